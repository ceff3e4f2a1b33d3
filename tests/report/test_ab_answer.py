"""The line that answers whether something got slower, of planted differences."""

import math
import re

import profile_builder as b
import pytest

from kit.compare.compare import compare_within
from kit.report.answer import ab_answers
from kit.stats.estimate import over_rounds, rounds_for


def answers(ratio, rounds, *, sd=0.005, precision_pct=3.0, round_s=30.0, **fields):
    new = b.member("torch", 2.0 * ratio, variant="new", sd=sd, **fields)
    old = b.member("torch", 2.0, variant="old", sd=sd)
    built = b.profile(b.group("g", old, new), rounds=rounds, compare=["variant"])
    return ab_answers(compare_within("a", built), precision_pct, round_s)


@pytest.mark.parametrize(
    ("ratio", "rounds", "begins"),
    [
        (1.1, 8, ": yes, new is "),
        (0.9, 8, ": no, new is "),
        (1.0, 10, ": no, new is at most "),
    ],
)
def test_a_planted_difference_is_answered(ratio, rounds, begins):
    (line,) = answers(ratio, rounds)
    assert begins in line
    assert line.endswith(f"({rounds} rounds)")


def test_what_is_not_known_says_how_many_rounds_would_tell():
    (line,) = answers(1.0, 3, sd=0.08)
    shown = r"[\d.]+ ± ([\d.]+) % (?:slower|faster) after 3 rounds; about (\d+) more rounds \((\d+) minutes?\)"
    known = re.search(f"not known yet, {shown}", line)
    assert line.endswith(" for ±3 %")
    half_pct, more, minutes = map(float, known.groups())
    assert half_pct > 3
    assert more >= 5
    assert minutes == math.ceil(more * 30 / 60)


def test_so_many_rounds_do_give_that_interval():
    known = over_rounds([0.00, 0.04, 0.08])
    rounds = rounds_for(known, math.log1p(0.03), 0.95)
    # With the same spread and so many rounds; one fewer does not.
    for count, is_enough in ((rounds, True), (rounds - 1, False)):
        logs = [0.04 + 0.04 * math.sqrt((count - 1) / count) * (-1) ** place for place in range(count)]
        assert (over_rounds(logs).half_width(0.95) <= math.log1p(0.03) * 1.02) is is_enough
    assert rounds_for(over_rounds([0.0, 5.0, -5.0]), 1e-3, 0.95) is None


def test_a_row_without_an_answer_says_why():
    failed = dict.fromkeys(range(4), b.reason("out_of_memory", signal="SIGKILL"))
    (line,) = answers(1.0, 4, failed_rounds=failed)
    assert "not known: failed" in line
