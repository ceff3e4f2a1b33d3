"""Differences in words, and the line that answers whether something got slower."""

import math
import re

import profile_builder as b
import pytest

from kit.compare.compare import compare_within
from kit.compare.fail_if_slower import limited_rows
from kit.report.comparison_columns import answer_cell
from kit.report.comparison_report import comparison_report, why_report
from kit.report.text_layout import _folded
from kit.report.values_in_words import unbroken
from kit.report.verdicts_in_words import ab_answers, ab_findings, answer, in_words
from kit.stats.estimate import Estimate, over, rounds_for


def judged(verdict, ratio, low=None, high=None, **more):
    return Estimate(verdict=verdict, ratio=ratio, low=low, high=high, count=8, **more)


@pytest.mark.parametrize(
    ("versus", "words"),
    [
        (judged("slower", 1.42, 1.39, 1.45), "1.42 ± 0.03 × slower"),
        (judged("faster", 1 / 1.82, 1 / 1.97, 1 / 1.67), "1.82 ± 0.15 × faster"),
        (judged("faster", 1 / 1.56, 1 / 1.96, 1 / 1.23), "1.56 ± 0.40 × faster"),
        (judged("slower", 1.56, 1.30, 1.96), "1.56 [1.30, 1.96] × slower"),
        (judged("slower", 1.031, 1.026, 1.036), "3.1 ± 0.5 % slower"),
        (judged("faster", 1 / 1.031, 1 / 1.036, 1 / 1.026), "3.1 ± 0.5 % faster"),
        (judged("faster", 1 / 1.098, 1 / 1.103, 1 / 1.093), "9.8 ± 0.5 % faster"),
        (judged("faster", 1 / 1.04, 1 / 1.081, 1 / 1.002), "4.0 [0.2, 8.1] % faster"),
        (judged("faster", 1 / 1.12, 1 / 1.14, 1 / 1.10), "1.12 ± 0.02 × faster"),
        (judged("unresolved", 1.01, 0.98, 1.038), "unresolved (within ±4 %)"),
        (judged("unresolved", 1.2, 0.5, 2.9), "unresolved (2.0 × faster to 2.9 × slower)"),
        (judged("unresolved", 1.56, 1.2, 2.0), "unresolved (1.56 × slower in 8 rounds)"),
        (
            judged("unresolved", 1.5, 1.1, 2.0, p_adjusted=0.06, comparisons=3),
            "unresolved (1.50 × slower, not significant in 3 tests)",
        ),
        (judged("same", 1.001, 0.995, 1.007, p_adjusted=0.7), "same (within 0.7 %)"),
        (judged("same", 1.005, 1.003, 1.007, p_adjusted=0.001), "same (0.5 ± 0.2 % slower)"),
        (judged("same", 1.0, 0.9885, 1.0115, p_adjusted=1.0), "same (within 1 %)"),  # the 90 % interval is within
        (judged("slower", 1.8, 1.2, 2.5, modes=(1.3, 2.4)), "bimodal: 1.3 and 2.4 × slower"),
        (judged("unresolved", 1.0, 0.6, 1.6, modes=(0.5, 2.0)), "bimodal: 2.0 × faster, 2.0 × slower"),
        (judged("unresolved", 1.3, unit="run"), "unresolved (1.30 × slower in 8 runs)"),
        (judged("unresolved", None), "no common round"),
        (judged("slower", 1.505, 1.505, 1.505 + 1e-12), "1.505 × slower"),  # all rounds gave the same
    ],
)
def test_a_difference_has_its_words(versus, words):
    assert in_words(versus) == words


@pytest.mark.parametrize(
    ("versus", "words"),
    [
        # An end that is above 0 is not printed as 0.
        (judged("slower", 1.06, 1.0002, 1.124), "6.00 [0.02, 12.40] % slower"),
        (judged("faster", 1 / 1.06, 1 / 1.124, 1 / 1.0002), "6.00 [0.02, 12.40] % faster"),
        (judged("slower", 1.2, 1.004, 1.44), "1.200 [1.004, 1.440] × slower"),
    ],
)
def test_an_interval_that_leaves_out_nothing_is_printed_so(versus, words):
    assert in_words(versus) == words


@pytest.mark.parametrize(
    ("versus", "words"),
    [
        (judged("slower", 1.031, 1.026, 1.036), "1.031 ± 0.005 × slower"),
        (judged("faster", 1 / 1.031, 1 / 1.036, 1 / 1.026), "1.031 ± 0.005 × faster"),
        (judged("same", 1.005, 1.003, 1.007, p_adjusted=0.001), "same (1.005 ± 0.002 × slower)"),
        (judged("unresolved", 1.03, unit="run"), "unresolved (1.03 × slower in 8 runs)"),
        (judged("unresolved", 1.004, unit="run"), "unresolved (1.004 × slower in 8 runs)"),
    ],
)
def test_beside_a_large_ratio_a_small_one_is_no_percentage(versus, words):
    assert in_words(versus, in_times=True) == words


def columns_of(members, column):
    built = b.profile(b.group("mlp train", *members), rounds=8, drift=0.0)
    report = comparison_report(compare_within("a", built), {})
    (table,) = report.tables
    index = next(index for index, known in enumerate(table.columns) if known.title.startswith(column))
    return [row[index] for row in table.rows]


@pytest.mark.parametrize(("far_ms", "sign"), [(4.0, "×"), (2.14, "%")])
def test_one_column_of_a_table_has_one_unit(far_ms, sign):
    members = [b.member("tensorflow", 2.0), b.member("torch", 2.08), b.member("jax", far_ms)]
    ratios = [cell.words for cell in columns_of(members, "against") if cell.words.endswith(("slower", "faster"))]
    assert len(ratios) == 2 and all(f" {sign} " in words for words in ratios), ratios


@pytest.mark.parametrize(("joules", "sign"), [((20.0, 20.6, 40.0), "×"), ((20.0, 20.6, 21.0), "%")])
def test_joules_of_one_column_have_one_unit(joules, sign):
    members = [
        b.member(name, 2.0, launch={"energy": b.energy(joules_j, tier="device_counter", error_fraction=0.01)})
        for name, joules_j in zip(("tensorflow", "torch", "jax"), joules, strict=True)
    ]
    words = [cell.words for cell in columns_of(members, "J/1k") if "," in cell.words]
    assert len(words) == 2 and all(f" {sign} " in shown for shown in words), words


@pytest.mark.parametrize(
    ("fields", "style"),
    [
        ({"verdict": "slower"}, "red"),
        ({"verdict": "faster"}, "green"),
        ({"verdict": "unresolved"}, ""),
        ({"verdict": "same"}, ""),
        ({"verdict": "slower", "modes": (1.3, 2.4)}, ""),
        ({"verdict": "slower", "contention_pct": 40.0}, ""),
        ({"verdict": "slower", "low": None, "high": None}, ""),
    ],
)
def test_only_a_verdict_has_a_color(fields, style):
    built = b.profile(b.group("mlp train", b.member("torch", 2.0), b.member("jax", 3.0)), rounds=8)
    row = next(row for row in compare_within("a", built).rows if not row.is_baseline)
    row.versus = judged(**{"ratio": 1.06, "low": 1.01, "high": 1.11} | fields)
    assert answer_cell(row, is_compared=True, in_times=False).style == style


@pytest.mark.parametrize("text", ["no file [Errno 2] x", "[Errno 2] no file", "[3, 4] ± 2 are 1 × 2 shapes"])
def test_the_legend_explains_signs_of_answers_and_none_of_an_errors_text(text):
    def fail(launch):
        launch.failure = b.Failure(phase="build", reason=b.reason("worker_failed", error=text))
        launch.blocks = b.Blocks()

    members = [b.member("torch", 2.0), b.member("jax", 2.0, change=fail)]
    report = comparison_report(compare_within("a", b.profile(b.group("mlp train", *members), rounds=8)), {})
    assert any("Errno" in row[-1].words or "shapes" in row[-1].words for row in report.tables[0].rows)
    assert not any("confidence" in words or "ratio" in words for _, words in report.legend)


@pytest.mark.parametrize("width", range(40, 130, 7))
def test_a_platforms_name_stays_in_one_line(width):
    name = unbroken("cpu · Intel Xeon Gold 6248")
    sentence = f"JAX is the fastest on {name} and gpu; comparing the fastest of each, {name} is slower."
    lines = _folded(sentence, width)
    assert " ".join(line.strip() for line in lines) == sentence.replace("\u00a0", " ")
    assert sum(line.count("cpu · Intel Xeon Gold 6248") for line in lines) == 2
    assert all(len(line.rstrip()) <= width for line in lines)


def test_a_name_wider_than_a_line_is_folded_between_its_words():
    assert [line.strip() for line in _folded(unbroken("one two three four"), 9)] == ["one two", "three", "four"]


def test_why_names_frameworks_as_people_write_them():
    built = b.profile(b.group("mlp train", b.member("jax", 2.0, compile_mode="jit")), rounds=8)
    assert "JAX" in why_report(compare_within("a", built), {"jax": "JAX"}).headline[0]


def test_what_is_unresolved_is_never_said_to_be_narrower_than_its_interval():
    for low, high in ((0.97, 1.001), (0.999, 1.0301), (0.9871, 1.0051), (0.8, 1.05)):
        shown = float(in_words(judged("unresolved", 1.0, low, high)).split("±")[1].split()[0])
        assert shown >= 100 * (max(high, 1 / low) - 1)
        assert shown <= math.ceil(100 * (max(high, 1 / low) - 1))


def two_variants(ratio, rounds, *, sd=0.005, **fields):
    new = b.member("torch", 2.0 * ratio, variant="new", sd=sd, **fields)
    old = b.member("torch", 2.0, variant="old", sd=sd)
    return b.profile(b.group("g", old, new), rounds=rounds, compare=["variant"])


def answers(ratio, rounds, *, precision_pct=3.0, round_s=30.0, **fields):
    return ab_answers(compare_within("a", two_variants(ratio, rounds, **fields)), precision_pct, round_s)


@pytest.mark.parametrize(
    ("ratio", "rounds", "begins"),
    [
        (1.1, 8, "yes: 9.6 ± 1.0 % slower"),
        (0.9, 8, "no: 1.12 ± 0.01 × faster"),
        (1.0, 10, "no: same (within "),
        (1.0, 4, "no: at most 0.6 % slower, one-sided"),  # it does not wait for an eighth round, nor does the gate
    ],
)
def test_a_planted_difference_is_answered_after_its_question(ratio, rounds, begins):
    (line,) = answers(ratio, rounds)
    question, _, words = line.partition("? ")
    assert question == "mlp train torch: is new more than 3 % slower than old"
    assert words.startswith(begins) and words.endswith(f"({rounds} rounds)")


@pytest.mark.parametrize(("rounds", "least", "most"), [(4, 7, 12), (16, 55, 64), (60, None, None)])
def test_what_is_found_of_two_variants_comes_with_the_rounds_that_would_halve_its_interval(rounds, least, most):
    (line,) = ab_findings(compare_within("a", two_variants(1.1, rounds, sd=0.02)), 30.0)
    asked = re.search(r"new against old: .* slower \(\d+ rounds\)(; (\d+) rounds \(\d+ min.*)?$", line).group(2)
    assert asked is None if least is None else least <= int(asked) <= most, "of hundreds of rounds it says nothing"


def test_two_rounds_have_no_interval_to_halve():
    (line,) = ab_findings(compare_within("a", two_variants(1.1, 2, sd=0.02)), 30.0)
    assert "unresolved" in line and "halve" not in line and line.count("2 rounds") == 1


def test_of_three_variants_and_of_frameworks_the_table_is_the_answer():
    three = b.group("g", *(b.member("torch", 2.0, variant=name) for name in ("old", "new", "other")))
    assert ab_findings(compare_within("a", b.profile(three, rounds=4, compare=["variant"])), 30.0) == []
    assert ab_findings(compare_within("a", b.profile(rounds=4)), 30.0) == []


@pytest.mark.parametrize("sd", [0.005, 0.02, 0.08])
@pytest.mark.parametrize("ratio", [0.97, 1.0, 1.03, 1.05, 1.08])
@pytest.mark.parametrize("rounds", [3, 7, 9, 13])
def test_the_sentence_and_the_gate_answer_alike(ratio, rounds, sd):
    built = two_variants(ratio, rounds, sd=sd)
    (line,) = ab_answers(compare_within("a", built), 5.0, None)
    ((_, row, shown),) = limited_rows(compare_within("a", built), 5.0)
    word = {"slower": "yes", "not_slower": "no", "unresolved": "not known"}[shown]
    assert line.partition("? ")[2].startswith(word)
    if row.versus.verdict != "unresolved" and shown != "unresolved":
        assert f"{word}: {answer(row)} (" in line  # the words of the table
    if shown == "unresolved":
        assert "more round" in line or "far more rounds" in line


def test_what_is_not_known_says_how_many_rounds_would_tell():
    (line,) = answers(1.1, 3, sd=0.08)
    shown = r"[\d.]+ ± ([\d.]+) % (?:slower|faster) after 3 rounds; about (\d+) more rounds \((\d+) minutes?\)"
    half_pct, more, minutes = map(float, re.search(f"not known yet: {shown}", line).groups())
    assert line.endswith(" for ±3 %")
    assert half_pct > 3 and more >= 5 and minutes == math.ceil(more * 30 / 60)


def test_so_many_rounds_do_give_that_interval():
    known = over([0.00, 0.04, 0.08])
    rounds = rounds_for(known, math.log1p(0.03), 0.95)
    # With the same spread and so many rounds; one fewer does not.
    for count, is_enough in ((rounds, True), (rounds - 1, False)):
        logs = [0.04 + 0.04 * math.sqrt((count - 1) / count) * (-1) ** index for index in range(count)]
        assert (over(logs).half_width(0.95) <= math.log1p(0.03) * 1.02) is is_enough
    assert rounds_for(over([0.0, 5.0, -5.0]), 1e-3, 0.95) is None


def test_a_row_without_an_answer_says_why():
    (line,) = answers(1.0, 4, failed_rounds=b.DEAD)
    assert "not known: failed" in line
