import math

import pytest

from kit.report.answer import in_words
from kit.stats.estimate import Estimate


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
def test_differences_are_said_as_people_say_them(versus, words):
    assert in_words(versus) == words


def test_what_is_unresolved_is_never_said_to_be_narrower_than_its_interval():
    for low, high in ((0.97, 1.001), (0.999, 1.0301), (0.9871, 1.0051), (0.8, 1.05)):
        shown = float(in_words(judged("unresolved", 1.0, low, high)).split("±")[1].split()[0])
        assert shown >= 100 * (max(high, 1 / low) - 1)
        assert shown <= math.ceil(100 * (max(high, 1 / low) - 1))
