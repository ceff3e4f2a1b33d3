import csv as csv_reader
import io
import json as json_reader
import re

import msgspec
import pytest
from comparison_text import body, comparison
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_builder import (
    MS,
    NO_RAPL,
    build_cell,
    build_failed,
    build_identity,
    build_profile,
    build_result,
    six_cells,
)
from rich.cells import cell_len

from kit.compare.comparison import compare
from kit.compare.rows import Row, Versus
from kit.report import csv, json, markdown, text
from kit.report.footnotes import Footnotes
from kit.report.plain import plain
from kit.report.terminal import wants_color
from kit.report.verdict_words import verdict_words

EVIL = "x\x1b[2J\x07\r\n\u202e|`=<b>"
RENDERERS = [text.render, markdown.render, csv.render, json.render]


def test_every_cell_has_its_row_under_its_group():
    lines = body(text.render(comparison()))
    assert [line.split()[0] for line in lines] == [
        "mlp",
        "tensorflow/graph",
        "torch/eager",
        "jax/jit",
        "cnn",
        "tensorflow/graph",
        "torch/eager",
        "jax/jit",
    ]
    torch = lines[2]
    for words in ("2.000 ms [1.996, 2.004]", "64,000", "15.6 µs", "150 ms", "600", "97.0 %", "n/a¹", "2.00× faster"):
        assert words in torch
    assert "baseline" in lines[1]


def test_columns_line_up():
    lines = [line for line in body(text.render(comparison())) if line.startswith("  ")]
    for mark in (" ms [", " µs", "n/a", " %  "):
        assert len({cell_len(line[: line.rindex(mark)]) for line in lines}) == 1, mark


def test_nothing_is_cut_off_however_long_a_name():
    name = "a-backend-with-a-very-long-name-" * 8
    rendered = text.render(comparison([*six_cells(), build_result(build_cell(name, "mlp"), [MS] * 10)]))
    assert f"{name}/graph" in rendered
    assert "…" not in rendered


def test_text_without_colour_has_no_escapes_and_with_colour_says_the_same():
    shown = comparison()
    bare, coloured = text.render(shown), text.render(shown, color=True)
    assert "\x1b" not in bare
    assert "\x1b[32m" in coloured
    unstyled = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert [line.rstrip() for line in unstyled.split("\n")] == bare.split("\n")


def test_the_table_fits_a_wide_terminal():
    assert max(map(cell_len, text.render(comparison()).split("\n"))) <= 160


@pytest.mark.parametrize("render", [text.render, markdown.render])
def test_a_note_names_every_cell_it_is_about(render):
    results = [build_result(build_cell("torch", batch=batch), [MS, 2 * MS] * 3) for batch in range(1, 60)]
    profile = build_profile(results)
    profile.suite = msgspec.structs.replace(profile.suite, precision_pct=0.5)
    rendered = " ".join(render(compare([("run", profile)])).replace("\\", "").split())
    assert all(f"{one.key} has ±" in rendered for one in results)


def test_reasons_stand_below():
    results = [*six_cells(), build_failed(build_cell("torch", "lstm")), build_result(build_cell("jax", "lstm"), [None])]
    rendered = text.render(comparison(results))
    assert f"¹ {NO_RAPL}" in rendered
    assert re.search(r"torch/eager .* failed² .* 0/1", rendered)
    assert "² failed in first_step: out of memory" in rendered
    assert re.search(r"jax/jit .* no steady state³", rendered)


@pytest.mark.parametrize("render", RENDERERS)
def test_an_empty_profile_renders(render):
    assert isinstance(render(comparison([])), str)


@pytest.mark.parametrize("render", RENDERERS)
def test_what_a_profile_carries_never_reaches_the_terminal_raw(render):
    results = [build_result(build_cell("torch", EVIL), [MS, MS]), build_failed(build_cell("jax", EVIL), EVIL)]
    shown = compare([(EVIL, build_profile(results, identity=build_identity(EVIL)))])
    rendered = render(shown)
    assert not set(rendered) & set("\x1b\x07\r\u202e")
    if render is text.render:
        coloured = render(shown, color=True)
        assert not re.search(r"\x1b(?!\[[\d;]*m)", coloured)


def test_markdown_tables_keep_their_columns():
    results = [build_result(build_cell("torch", "a|b"), [MS, MS]), build_failed(build_cell("j|x", "a|b"), "x | y")]
    for line in markdown.render(comparison(results)).split("\n"):
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 13
    assert "a\\|b" in markdown.render(comparison(results))


def test_markdown_has_a_table_for_each_group():
    rendered = markdown.render(comparison())
    assert rendered.count("### ") == 2
    assert rendered.count("| torch/eager |") == 2
    assert "| compile +1st step |" in rendered
    assert "- Data: MNIST." in rendered


def test_cells_without_a_partner_are_beside_the_table_and_in_csv_and_json():
    alone = build_result(build_cell("torch", "lstm"), [MS, MS])
    profiles = [("a", build_profile(six_cells())), ("b", build_profile([*six_cells()[:3], alone], id="run-2"))]
    shown = compare(profiles)
    for render in (text.render, markdown.render):
        table, notes = render(shown).split("Only in ", 1)
        assert "no verdict" not in table
        assert not re.search(r"^(### )?(lstm|cnn) · ", table, re.MULTILINE)
        assert "lstm/torch" in notes
    rows = list(csv_reader.DictReader(io.StringIO(csv.render(shown))))
    assert len(rows) == len(json_reader.loads(json.render(shown))["rows"]) == 6 + 4


def test_in_one_profile_a_cell_without_a_baseline_keeps_its_row():
    alone = build_result(build_cell("torch", "lstm"), [MS, MS])
    assert "lstm · train" in text.render(comparison([*six_cells(), alone]))


def test_csv_has_raw_numbers_and_units_in_its_names():
    rows = list(csv_reader.DictReader(io.StringIO(csv.render(comparison()))))
    assert len(rows) == 6
    torch = rows[1]
    assert float(torch["step_ns"]) == pytest.approx(2 * MS, rel=1e-3)
    assert float(torch["step_low_ns"]) < float(torch["step_ns"]) < float(torch["step_high_ns"])
    assert torch["energy_per_sample_j"] == ""
    assert torch["no_joules_per_sample_j_because"] == NO_RAPL
    assert (torch["verdict"], torch["is_baseline"], torch["parity_agrees"]) == ("faster", "false", "true")


def csv_rows(results):
    return list(csv_reader.DictReader(io.StringIO(csv.render(comparison(results)))))


def test_csv_numbers_have_the_digits_that_mean_something():
    for row in csv_rows(six_cells()):
        for name, shown in row.items():
            if re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", shown):
                assert float(shown) == float(f"{float(shown):.6g}"), (name, shown)
        assert row["step_ns"].isdigit() and row["compile_ns"].isdigit()


def test_csv_gives_no_interval_of_cpu_percent():
    first = csv_rows([build_result(build_cell("torch"), [MS, MS])])[0]
    assert float(first["process_cpu_pct"]) == 180.5
    assert not [name for name in first if name.startswith("process_cpu_") and name != "process_cpu_pct"]


def test_a_hopeless_interval_is_said_in_words():
    results = [build_result(build_cell(backend), [MS, 20 * MS]) for backend in ("tensorflow", "torch")]
    for render in (text.render, markdown.render):
        rendered = render(comparison(results))
        assert "too wide: 2 launches" in rendered
    step = csv_rows(results)[0]
    assert float(step["step_high_ns"]) > 10 * float(step["step_low_ns"])


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r@", " ="])
def test_csv_starts_no_formula(start):
    results = [build_result(build_cell(start + "1+1", "mlp"), [MS, MS])]
    row = next(csv_reader.DictReader(io.StringIO(csv.render(comparison(results)))))
    assert row["backend"].startswith("'")


def test_json_is_the_structure():
    decoded = json_reader.loads(json.render(comparison()))
    assert decoded["rows"][1]["versus"]["verdict"] == "faster"
    assert decoded["rows"][0]["summary"]["reasons"]["joules_per_sample_j"] == NO_RAPL


def words_of(verdict, ratio, low, high, **fields):
    versus = Versus(verdict=verdict, time_ratio=ratio, time_ratio_low=low, time_ratio_high=high, **fields)
    row = comparison().rows[1]
    shown = {name: getattr(row, name) for name in Row.__struct_fields__} | {"versus": versus}
    return verdict_words(Row(**shown), Footnotes())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("faster", 0.433, 0.42, 0.45), "2.31× faster [2.22, 2.38]"),
        (("faster", 0.5, 0.4999, 0.5001), "2.000× faster [2.000, 2.000]"),
        (("slower", 1.3, 1.25, 1.36), "1.30× slower [1.25, 1.36]"),
        (("slower", 1.025, 1.02, 1.03), "2.5 % slower [+2.0, +3.0] %"),
        (("faster", 0.975, 0.97, 0.98), "2.5 % faster [−3.0, −2.0] %"),
        (("slower", 100.0, 1.03, 9700.0), "100× slower [at least 1.03]"),
        (("faster", 0.01, 0.0001, 0.97), "100× faster [at least 1.03]"),
        (("same", 1.001, 0.996, 1.003), "same [−0.4, +0.3] %"),
    ],
)
def test_verdicts_in_words(arguments, words):
    assert words_of(*arguments) == words


def test_unresolved_says_how_many_launches_would_tell():
    interval = (1.02, 0.98, 1.06)
    assert words_of("unresolved", *interval, launches=5, launches_to_settle=14).endswith("(needs ~14)")
    assert words_of("unresolved", *interval, launches=2).endswith("(needs more)")
    assert words_of("unresolved", *interval, launches=9).endswith("(not by 200)")
    assert words_of("unresolved", *interval, launches=9).startswith("unresolved [−2.0, +6.0] %")
    assert words_of("unresolved", 1.5, 0.2, 9.0, launches=2) == "unresolved (needs more)"
    assert words_of("unresolved", 1.5, 0.0, 9e300, launches=3, launches_to_settle=10) == "unresolved (needs ~10)"
    assert words_of("unresolved", None, None, None) == "unresolved¹"


@settings(max_examples=50)
@given(st.text(max_size=500))
def test_plain_text_is_printable_and_bounded(raw):
    assert plain(raw).isprintable()
    assert len(plain(raw)) <= 400


def test_ordinary_text_is_left_alone():
    assert plain("Größe: 5 µs · 模型") == "Größe: 5 µs · 模型"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "wanted"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(stream, environment, wanted, monkeypatch):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_color(stream) is wanted
