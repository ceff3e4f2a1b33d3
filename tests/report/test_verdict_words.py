"""Differences in words, and the line that answers whether something got slower."""

import math
import re

import profile_builder as b
import pytest

from kit.compare.compare import compare_within
from kit.compare.fail_if_slower import limited_rows
from kit.report.verdicts_in_words import ab_answers, answer, in_words
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
