import csv
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import profile_builder as b
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kit.audit.audit import findings_of as audit
from kit.audit.finding import Finding
from kit.compare.comparability import run_mismatches
from kit.compare.compare import compare_runs, compare_within, reduce_run
from kit.compare.sample import read_run
from kit.profile.facts import FACTS, Fact
from kit.profile.launch import Phase
from kit.profile.reason import Reason
from kit.report.columns import LETTERS
from kit.report.comparison import comparison_report, why_report
from kit.report.formats import FORMATS, write
from kit.report.notes import explanation
from kit.report.plain import markdown as escaped
from kit.report.plain import one_line
from kit.report.profile import profile_report
from kit.report.quantity import number
from kit.report.sentences import ALWAYS, EFFECTS, LOUD, OF_COLUMNS, OF_MARKS, WIDE, sentence
from kit.report.table import Cell, Column, Report, Table

TITLES = {"jax": "JAX", "torch": "PyTorch", "tensorflow": "TensorFlow"}
FAULTS = {"process.minor_faults": 87_341.0, "process.user_ns": 50e6, "process.system_ns": 50e6}


def within(profile):
    return compare_within("p", profile, findings=audit(read_run("p", profile)))


def written(comparison, name, **more):
    return write(comparison_report(comparison, TITLES, **more), name, io.StringIO())


def text(comparison, **more):
    return written(comparison, "text", **more)


def shown_profile(built, name="text"):
    return write(profile_report(built), name, io.StringIO())


class Terminal(io.StringIO):
    def isatty(self):
        return True


def example():
    dead = dict.fromkeys(range(8), b.reason("out_of_memory", signal="SIGKILL"))
    return within(
        b.profile(
            b.group("mlp train", b.member("tensorflow", 3.73), b.member("torch", 5.0), b.member("jax", 2.05)),
            b.group(
                "cnn train",
                b.member("tensorflow", 53.0, "cnn"),
                b.member("torch", 89.2, "cnn", failed_rounds=dead),
                b.member("jax", 278.0, "cnn", counters=FAULTS),
            ),
        )
    )


def test_an_undisturbed_run_has_a_legend_a_hint_and_no_other_footnote():
    members = b.member("tensorflow", 4.0), b.member("torch", 2.0)
    shown = text(within(b.profile(b.group("mlp train", *members))), file=Path("my run.json"))
    assert shown.rpartition("\n\n")[2].splitlines() == [
        "step: time per batch · ×: ratio of times, paired within rounds · ±: 95 % confidence interval",
        "all columns: kit compare 'my run.json' --wide",
    ]


def test_why_has_the_findings_of_each_group_and_what_to_try():
    shown = write(why_report(example()), "text", io.StringIO())
    assert "page-faults" in shown and "87,341 page faults" in shown and "(apt: libtcmalloc-minimal4)" in shown
    rows = list(csv.DictReader(io.StringIO(write(why_report(example()), "csv"))))
    assert [(row["group"], row["rule"]) for row in rows] == [("cnn train", "page-faults")]


def test_a_long_name_of_the_baseline_takes_one_line_of_the_header():
    plans = [b.profile(b.group("g", b.member("torch", 2.0)), id=str(seed), seed=seed) for seed in (0, 1)]
    runs = [reduce_run(f"{'long-' * 9}{number}", plan) for number, plan in enumerate(plans)]
    lines = text(compare_runs(runs)).splitlines()
    (header,) = [place for place, line in enumerate(lines) if " against " in line and "kit compare" not in line]
    assert lines[header + 1].startswith("  torch")


def test_what_is_found_in_a_whole_group_is_explained():
    members = [
        b.member(name, ms, launch={"energy": b.energy(11.0, tier=tier, error_fraction=0.01)})
        for name, ms, tier in (("torch", 2.0, "device_counter"), ("jax", 4.0, "modelled"))
    ]
    comparison = within(b.profile(b.group("mlp train", *members)))
    assert "modelled-beside-measured" in write(why_report(comparison), "text", io.StringIO())
    assert "MODELLED" in text(comparison), "it is never hidden"


@pytest.mark.parametrize(("compile_s", "stands"), [(4.9, False), (5.1, True)])
def test_compilation_stands_in_the_table_where_it_is_long(compile_s, stands):
    phases = [Phase(name="first_step", begin_ns=0, duration_ns=round(compile_s * 1e9))]
    members = b.member("torch", 2.0, launch={"phases": phases}), b.member("jax", 1.0)
    assert ("compile" in text(within(b.profile(b.group("g", *members))))) is stands


@pytest.mark.parametrize("columns", [45, 60, 140])
def test_a_narrow_terminal_gets_fewer_columns_and_whole_answers(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    shown = write(comparison_report(example(), TITLES), "text", Terminal())
    *lines, _hint = shown.splitlines()
    assert max(map(len, lines)) <= columns
    assert ("too narrow for: samples/s" in shown) is (columns < 100)
    rows = [line for line in shown.splitlines() if line.startswith("  jax ")]
    assert rows and all(line.endswith(("faster", "slower")) for line in rows)


def test_a_wide_terminal_is_used(monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("NO_COLOR", "1")
    table = Table("t", [Column("")] + [Column("a long title", hides=1)] * 9, [[Cell("row")] + [Cell("1")] * 9])
    assert "too narrow" not in write(Report("kit compare", [], [table]), "text", Terminal())
    assert "too narrow" in write(Report("kit compare", [], [table]), "text", io.StringIO())


def test_colours_are_for_terminals_that_want_them(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in write(comparison_report(example(), TITLES), "text", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in write(comparison_report(example(), TITLES), "text", Terminal())


def test_csv_has_a_row_a_cell_and_columns_for_whatever_was_sensed():
    launch = {"sensors": b.sampled(oddity=(2.0, 3.0, "W"))}
    members = b.member("torch", 2.0, launch=launch, counters={"new.count": 7.0}), b.member("jax", 4.0)
    comparison = within(b.profile(b.group("g", *members)))
    rows = list(csv.DictReader(io.StringIO(written(comparison, "csv"))))
    assert [row["name"] for row in rows] == ["torch", "jax"]
    assert float(rows[1]["ratio"]) == pytest.approx(2.0, rel=0.05) and rows[1]["verdict"] == "slower"
    assert rows[0]["oddity mean W"] == "2.0" and rows[0]["oddity max W"] == "3.0" and rows[1]["oddity mean W"] == ""
    assert float(rows[0]["new.count per step"]) == pytest.approx(7.0, rel=0.02)
    assert {row["rule"] for row in rows} == {"rounds-4"}


def test_junit_fails_what_is_slower_and_skips_what_is_not_resolved():
    members = b.member("tensorflow", 2.0), b.member("torch", 3.0), b.member("jax", 2.2, sd=0.3)
    comparison = within(b.profile(b.group("g", *members), seed=1))
    limited = written(comparison, "junit", allowed_pct=10.0)
    cases = {case.get("name").split()[0]: case for case in ET.fromstring(limited).iter("testcase")}
    assert cases["torch"].find("failure") is not None
    assert cases["jax"].find("skipped").get("message").count("unresolved") == 1
    assert "–" not in cases["tensorflow"].find("system-out").text
    assert len(cases["tensorflow"].findall("*")) == 1 and cases["tensorflow"].find("system-out") is not None
    lenient = ET.fromstring(written(comparison, "junit", allowed_pct=100.0))
    assert lenient.get("failures") == "0"
    assert 'value="rounds-4"' in written(comparison, "junit")
    broken = ET.fromstring(written(example(), "junit", allowed_pct=10.0))
    assert broken.get("errors") == "1"


def test_markdown_escapes_what_is_markup_there_and_nothing_else():
    plain = "quick · 2 networks × train+infer · UCI-HAR · 2026-11-22 09:20 · JAX is the fastest: 1.5 × uci_har!"
    assert escaped(plain) == plain
    for odd in ("www.a.b", "http://a.b", "mailto:a@b.c", ":smile:", "#12", "&lt;"):
        assert "\\" in escaped(odd)


@settings(deadline=None)
@given(st.text("a1 _*`#+-=.:!|<>[]()~&;{}\\/", max_size=12))
def test_no_text_is_markup_in_markdown(text):
    plain = one_line(text).strip()
    parser, shown = MarkdownIt("commonmark").enable(["table", "strikethrough"]), escaped(plain)
    table = parser.parse(f"| a | b |\n| - | - |\n| {shown} | x |")
    cells = [token.children for token in table if token.type == "inline"]
    assert len(cells) == 4 and "".join(child.content for child in cells[2]) == plain
    line = parser.parse(shown)
    assert [token.type for token in line] in ([], ["paragraph_open", "inline", "paragraph_close"])
    assert all(child.type.startswith("text") for token in line for child in token.children or [])


def test_what_differs_is_explained_with_its_effect():
    kernels = {"a": "6.1", "b": "6.6"}
    profiles = [b.profile(id=label, rounds=3, identity=b.identity(kernel=kernels[label])) for label in kernels]
    comparison = compare_runs([reduce_run(built.id, built) for built in profiles])
    shown = write(why_report(comparison), "text", io.StringIO())
    assert "kernel: 6.1 (a), 6.6 (b)" in shown and "The kernel decides" in shown


def test_show_says_an_exception_once_and_no_version_that_is_not_known():
    dead = {number: b.reason("exception", type="RuntimeError", message="no luck") for number in range(8)}
    built = b.profile(b.group("g", b.member("torch", 2.0, failed_rounds=dead)))
    for launch in built.cells[0].launches:
        launch.failure = msgspec.structs.replace(launch.failure, stderr_tail="Traceback\nRuntimeError: no luck\n")
        launch.python, launch.backend_version = "3.11.7", None
    shown = shown_profile(built)
    assert "None" not in shown and "Python 3.11.7" in shown
    assert shown.count("RuntimeError: no luck") == 8


def test_the_label_of_a_run_stands_in_its_headline():
    built = b.profile(label="Tuesday")
    assert text(within(built)).startswith("Tuesday · quick")
    assert shown_profile(built).startswith("Tuesday · run-1")


def test_a_code_that_is_not_known_is_shown_as_it_is():
    assert sentence(Reason(code="warp_core", values={"needed_b": 2**30})) == "warp core (needed_b 1.00 GiB)"
    # Of another kit, with other values.
    assert "signal" in sentence(Reason(code="signal", values={"number": 9}))


def test_a_rule_and_a_fact_without_a_sentence_are_shown_as_they_are():
    finding = Finding(
        code="warp_core", severity="note", values={"lost_ns": 2e6}, remedy=Reason(code="eject_it", values={})
    )
    line = explanation(finding, "torch")
    assert "warp core" in line.evidence and "torch" in line.evidence and "2.00 ms" in line.evidence
    assert line.remedy == "eject it"
    runs = [(label, {"warp_core": label, "kernel": label}) for label in ("a", "b")]
    graded = [(mismatch.kind, mismatch.grade) for mismatch in run_mismatches(runs)]
    assert graded == [("kernel", "warns"), ("warp_core", "noted")]


def test_a_new_fact_is_an_entry_and_is_said_with_its_effect_where_it_differs(monkeypatch):
    monkeypatch.setitem(FACTS, "warp_core", Fact("warns", "warp core"))
    monkeypatch.setitem(EFFECTS, "warp_core", "It matters.")
    machines = {label: b.identity(facts={"warp_core": label}) for label in ("a", "b")}
    runs = [reduce_run(label, b.profile(id=label, identity=machine)) for label, machine in machines.items()]
    assert "could explain a difference: warp core: a (a), b (b)" in text(compare_runs(runs))
    assert "It matters." in write(why_report(compare_runs(runs)), "text", io.StringIO())


ODD = st.sampled_from("\x1b\x07\r\n\t\u202e\u0300|`<>[]=+-@\ud7ff{}%")
HOSTILE = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), ODD), max_size=30)


@settings(max_examples=60, deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_text_from_a_profile_controls_what_shows_it(name, code, version):
    odd = Reason(code=code, values={name: version, "n_b": 5})
    launch = {"notes": [odd], "sensors": b.sampled(**{"x" + name: (1.0, 2.0, version)})}
    cells = [
        b.member("torch", 2.0, name, launch=launch),
        b.member("jax", 2.0, name, failed_rounds={0: odd, 1: odd}, variant=version),
        b.member("tensorflow", 1.0, name, compile_mode=code, counters={name: 3.0}),
    ]
    plan = b.group(name, *{member.cell.key: member for member in cells}.values())
    machine = b.identity(name, packages={name: version})
    built = b.profile(plan, rounds=2, cycles=3, id=code, identity=machine, suite=name)
    built.suite.data[name] = "synthetic"
    comparison = within(built)
    twice = [reduce_run(label, msgspec.structs.replace(built, id=f"{label}{code}")) for label in ("a", "b")]
    runs = compare_runs(twice, force=True)
    for shown in (
        *(written(compared, name) for compared in (comparison, runs) for name in FORMATS),
        *(shown_profile(built, name) for name in FORMATS),
        *(written(comparison, name, wide=True) for name in ("text", "markdown")),
        write(why_report(runs), "text", io.StringIO()),
    ):
        assert not {unicodedata.category(c) for c in shown if c != "\n"} & {"Cc", "Cf", "Zl", "Zp", "Cs"}
    for row in csv.reader(io.StringIO(written(comparison, "csv"))):
        assert not any(field[:1] in "=+@\t\r|" for field in row if field)
    ET.fromstring(written(comparison, "junit"))
    json.loads(written(runs, "json"))


def test_cpu_features_are_named_where_they_are_known():
    def with_flags(flags):
        return b.identity(facts={"cpu.flags": flags})

    def line(*identities):
        runs = [reduce_run(name, b.profile(id=name, identity=of)) for name, of in zip("ab", identities, strict=True)]
        return next(line for line in text(compare_runs(runs)).splitlines() if "CPU features" in line)

    named = line(with_flags("avx2 avx512f fma"), with_flags("avx2 fma sse4a"))
    assert named.endswith("CPU features: only avx512f (a), only sse4a (b)")
    assert "f" * 8 not in line(with_flags("avx2 fma"), with_flags(f"sha256:{'f' * 64}"))


def test_names_are_not_cut_so_far_that_two_read_alike():
    names = ("2 devices batch 64", "2 devices batch 64 no-all-reduce", "2 devices batch 128", "1 device batch 64")
    columns = [Column("", right=False, width_max=34), Column("step", hides=1), *[Column("efficiency")] * 7]
    rows = [[Cell(name), *[Cell("12345.67")] * 8] for name in names]
    lines = write(Report("kit compare", [], [Table("cnn", columns, rows)]), "text").splitlines()
    shown = [line.strip().split("  ")[0] for line in lines if "12345" in line]
    assert len({*shown}) == len(names), shown
    assert "too narrow for: step" in lines[-1], "a column goes first"


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_every_reason_of_a_blank_cell_has_letters_of_its_own(name):
    rows = [[Cell(f"row {place}"), Cell("–", because=f"reason {place}.")] for place in range(60)]
    shown = write(Report("kit compare", [], [Table("t", [Column(""), Column("gain")], rows)]), name)
    letters = dict(re.findall(r"– (\w+) +reason (\d+)\.", shown))
    assert sorted(map(int, letters.values())) == [*range(60)]
    for letter, place in letters.items():
        assert re.search(rf"row {place}\b[ |]+– {letter}\b", shown)


@pytest.mark.parametrize("wide", [False, True])
def test_what_a_letter_stands_for_is_said_where_it_is_shown(wide):
    def built_at(begin_ns):
        phases = [Phase(name=name, begin_ns=begin_ns, duration_ns=10**9) for name in ("start", "build", "first_step")]
        return {"process": "shared", "phases": phases}

    train = b.member("tensorflow", 2.0, launch=built_at(0))
    infer = b.member("tensorflow", 1.0, task="infer", launch=built_at(10**10))
    others = [[b.member(of, 3.0, task=task) for of in ("torch", "jax")] for task in ("train", "infer")]
    built = b.profile(*(b.group(of.cell.task, of, *more) for of, more in zip((train, infer), others, strict=True)))
    shown = text(within(built), wide=wide)
    assert ("warm process" in shown) == (re.search(r"\d s w\b", shown) is not None) == wide
    assert ("several cells shared" in shown) == (re.search(r"iB\*", shown) is not None) == wide


def test_each_note_is_shown_by_one_thing():
    """Every table, only wide ones, a column, or a letter: the code of a note is listed under one of them."""
    listed = [*ALWAYS, *WIDE, *(code for codes in (*OF_COLUMNS.values(), *OF_MARKS.values()) for code in codes)]
    assert len({*listed}) == len(listed) and {*LOUD} <= {*ALWAYS} and OF_MARKS.keys() == LETTERS.keys()


def test_notes_of_one_kind_are_counted_where_they_are_too_many():
    def shifted(launch):
        losses = [loss * (1 + len(launch.cell_key) / 1000) for loss in launch.parity.losses]
        launch.parity = b.Parity(losses=losses, weights_sha256="a" * 64, batches_sha256="b" * 64)

    odd = [b.member("jax", 2.0, f"net{place}", change=shifted) for place in range(9)]
    groups = [
        b.group(of.cell.workload, *(b.member(name, 2.0, of.cell.workload) for name in ("torch", "tensorflow")), of)
        for of in odd
    ]
    comparison = within(b.profile(*groups, rounds=3, cycles=3))
    shown = text(comparison)
    assert shown.count("PARITY FAILED") == 6 and "3 more notes of this kind" in shown
    differing = [
        note for note in json.loads(written(comparison, "json"))["notes"] if note["what"]["code"] == "parity_differs"
    ]
    assert len(differing) == 9


@pytest.mark.parametrize(
    ("value", "shown"), [(999.4, "999"), (999.7, "1,000"), (1000, "1,000"), (-999.7, "-1,000"), (99.96, "100")]
)
def test_numbers_that_are_shown_alike_are_written_alike(value, shown):
    assert number(value) == shown
