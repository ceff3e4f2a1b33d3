"""Many profiles: a line a cell instead of a line a row, and every row in CSV and JSON."""

import csv as csv_reader
import io
import json as json_reader
import re

import msgspec
import pytest
from profile_builder import MS, build_cell, build_failed, build_profile, build_result, six_cells

from kit.compare.comparison import compare
from kit.compare.overview import (
    FURTHEST_SHOWN,
    PROFILES_IN_FULL_MAX,
    cell_overviews,
    furthest_profiles,
    many,
)
from kit.report import csv, json, markdown, text
from kit.report.ascii_json import ascii_json

EVIL = "x\x1b[2J\r\n|`<b>"


def profile_with(torch_ms, *more, **fields):
    cells = six_cells(medians_ms={"tensorflow": 4.0, "torch": torch_ms, "jax": 2.0})
    return build_profile([*cells, *more], **fields)


def comparison_of(count, **fields):
    """`p0` is the baseline; PyTorch takes 1 % longer in each that follows."""
    profiles = [(f"p{n}", profile_with(2.0 * 1.01**n, id=f"run-{n}", **fields)) for n in range(count)]
    return compare(profiles)


@pytest.fixture(scope="module")
def fifteen():
    return comparison_of(15)


def test_few_profiles_have_a_line_for_each_row():
    shown = comparison_of(PROFILES_IN_FULL_MAX)
    assert not many(shown)
    rendered = text.render(shown)
    assert "furthest from the baseline" not in rendered
    assert all(len(re.findall(rf" p{n} ", rendered)) == 6 for n in range(PROFILES_IN_FULL_MAX))


def test_many_have_a_line_for_each_cell(fifteen):
    assert many(fifteen)
    rendered = text.render(fifteen)
    (line,) = (line for line in rendered.split("\n")[:12] if "torch/eager" in line)
    # Fourteen others: 1 to 14 % slower; the first of them is within the band's reach.
    assert "2.000 ms [1.996, 2.004]" in line
    assert "1.010 (p1)" in line and "1.149 (p14)" in line and "1.077" in line
    assert rendered.count("torch/eager") == 2
    assert "14 other profiles against it; `--format csv` and `--format json` have a row" in rendered
    assert rendered.startswith("p0: suite quick")
    assert "p1: suite quick" not in rendered


def test_verdicts_are_counted(fifteen):
    found = {(one.cell.workload, one.cell.backend): one for one in cell_overviews(fifteen)}
    torch, jax = found["mlp", "torch"], found["mlp", "jax"]
    assert torch.others == torch.verdicts.total() == 14
    assert torch.verdicts["slower"] + torch.verdicts["unresolved"] == 14 and torch.verdicts["slower"] >= 12
    assert jax.verdicts == {"same": 14}
    assert torch.median == pytest.approx((1.01**7 + 1.01**8) / 2, rel=1e-3)
    assert jax.no_verdict == torch.no_verdict == 0


def test_the_furthest_profiles_come_first(fifteen):
    found = furthest_profiles(fifteen)
    assert [one.profile for one in found] == [f"p{n}" for n in range(14, 14 - FURTHEST_SHOWN, -1)]
    assert found[0].ratio == pytest.approx(1.01 ** (14 / 3), rel=1e-3)
    assert found[0].cells == 6
    lines = text.render(fifteen).split("\n")
    start = lines.index("furthest from the baseline")
    assert [line.split()[0] for line in lines[start + 1 : start + 1 + FURTHEST_SHOWN]] == [one.profile for one in found]


def test_faster_is_as_far_as_slower():
    profiles = [(f"p{n}", profile_with(2.0 * 1.01**n)) for n in range(14)]
    found = furthest_profiles(compare([*profiles, ("quick", profile_with(1.0))]))
    assert found[0].profile == "quick"


def test_markdown_has_the_same_lines(fifteen):
    rendered = markdown.render(fifteen)
    assert rendered.count("| torch/eager |") == 2
    assert "### furthest from the baseline" in rendered
    for line in rendered.split("\n"):
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) in (12, 8)


def test_csv_and_json_keep_every_row(fifteen):
    rows = list(csv_reader.DictReader(io.StringIO(csv.render(fifteen))))
    assert len(rows) == len(json_reader.loads(json.render(fifteen))["rows"]) == 15 * 6


@pytest.mark.parametrize("renderer", [csv, json])
def test_pieces_are_the_whole(renderer, fifteen, monkeypatch):
    whole = renderer.render(fifteen)
    for rows in (1, 7, 89, 90, 91):
        monkeypatch.setattr(renderer, "ROWS_AT_A_TIME", rows)
        assert renderer.render(fifteen) == whole
    assert whole.isascii() or renderer is csv


def test_json_pieces_are_laid_out_as_one():
    shown = comparison_of(2)
    assert json.render(shown) == ascii_json(msgspec.json.format(msgspec.json.encode(shown), indent=2)) + "\n"


def test_json_of_names_that_look_like_its_own_layout():
    label = '\n  "rows": []'
    shown = compare([(label, build_profile(six_cells())), ("b", build_profile(six_cells(), id=label))])
    assert json_reader.loads(json.render(shown))["rows"][0]["profile"] == label


def test_cells_without_numbers_and_partners():
    def odd(number):
        alone = [build_result(build_cell("torch", "gru"), [MS, MS])] if number % 2 else []
        return [build_failed(build_cell("jax", "lstm")), *alone]

    shown = compare([(f"p{n}", profile_with(2.0, *odd(n))) for n in range(14)])
    found = {one.cell.workload: one for one in cell_overviews(shown)}
    assert (found["lstm"].lowest, found["lstm"].median, found["lstm"].no_verdict) == (None, None, 13)
    assert "gru" not in found  # the baseline lacks it: a note says who has it
    assert re.search(r"jax/jit +13 +– +– +– +– +0 +0 +0 +0 +13", text.render(shown))


def test_nothing_to_compare_at_all_is_still_shown():
    shown = compare([(f"p{n}", build_profile([build_failed(build_cell("jax", "lstm"))])) for n in range(14)])
    assert "furthest" not in text.render(shown) + markdown.render(shown)


@pytest.mark.parametrize("render", [text.render, markdown.render])
def test_names_reach_no_terminal_raw(render):
    profiles = [
        (f"{EVIL}{n}", profile_with(2.0 + n, build_result(build_cell("torch", EVIL), [MS, MS]))) for n in range(14)
    ]
    assert not set(render(compare(profiles))) & set("\x1b\x07\r")


def test_notes_that_thousands_may_have_are_cut_short():
    profiles = [(f"p{n}", profile_with(2.0, interrupted=True)) for n in range(14)]
    notes = compare(profiles).notes
    assert sum("is not complete" in note for note in notes) == 6
    assert "… and 8 more notes like the one above." in notes
