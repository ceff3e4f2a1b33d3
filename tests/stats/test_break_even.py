"""When a program that compiles for longer has overtaken another."""

import numpy as np
import pytest

from kit.stats.break_even import break_even


def drawn(rng, rounds, extra_s=2.0, saving_ms=1.0, sd=0.1):
    shared = rng.normal(1.0, sd, rounds)  # the machine's speed is in both
    extra = 1e9 * extra_s * shared * rng.normal(1.0, 0.02, rounds)
    return extra, 1e6 * saving_ms * shared * rng.normal(1.0, 0.05, rounds)


def test_planted_break_evens_lie_in_their_intervals():
    rng = np.random.default_rng(1)
    points = [break_even(*drawn(rng, 5), "faster") for _ in range(600)]
    assert {point.outcome for point in points} == {"pays"}
    assert np.median([point.steps for point in points]) == pytest.approx(2001, rel=0.02)
    covered = np.mean([point.low <= 2001 <= point.high for point in points])
    assert 0.92 <= covered <= 0.98  # nominally 0.95; four standard errors are 0.036


@pytest.mark.parametrize(
    ("extra_ns", "saving_ns", "verdict", "outcome"),
    [
        ([2e9, 2.1e9, 1.9e9], [-1e6, -1.1e6, -0.9e6], "slower", "never"),
        ([2e9, 2.1e9, 1.9e9], [1e6, -1e6, 2e6], "unresolved", "unresolved"),
        ([2e9, 2.1e9], [1e6, 1.1e6], "unresolved", "unresolved"),
        ([-2e9, -2.1e9, -1.9e9], [1e6, 1.1e6, 0.9e6], "faster", "never"),  # the other one
        ([-2e9, -2.1e9, -1.9e9], [-1e6, -1.1e6, -0.9e6], "slower", "pays"),
        ([0.0] * 3, [1e6, 1.1e6, 0.9e6], "faster", "at_once"),
        ([2e9] * 3, [1e6] * 3, "faster", "pays"),
        ([2e9] * 3, [1e6] * 3, "slower", "never"),  # whatever the rounds' times say
        ([2e9] * 3, [1e6] * 3, "same", "unresolved"),
    ],
)
def test_break_even_never_says_more_than_the_verdict(extra_ns, saving_ns, verdict, outcome):
    point = break_even(extra_ns, saving_ns, verdict)
    assert point.outcome == outcome
    if outcome == "unresolved":
        assert (point.low, point.high) == (None, None)


def test_without_spread_it_is_exact():
    point = break_even([2e9] * 3, [1e6] * 3, "faster")
    assert (point.steps, point.low, point.high) == pytest.approx((2001, 2001, 2001))
    assert break_even([], [], "unresolved") is None
