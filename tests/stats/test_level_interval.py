"""Planted normal logarithms: the interval covers their mean as often as it says."""

import math

import numpy as np
import pytest

from kit.stats.difference import level_interval

STEP_NS = 2e6
RUNS = 2000


@pytest.mark.parametrize("rounds", [3, 5, 8])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_it_covers_the_planted_level_as_often_as_it_says(rounds, level):
    logs = np.random.default_rng(rounds).normal(math.log(STEP_NS), 0.1, (RUNS, rounds))
    intervals = [level_interval([[value] for value in np.exp(run)], level) for run in logs]
    covered = sum(low <= STEP_NS <= high for low, high in intervals) / RUNS
    assert covered == pytest.approx(level, abs=4 * math.sqrt(level * (1 - level) / RUNS))


def test_launches_of_one_round_are_one_observation():
    once, thrice = ([[1.0] * many, [2.0] * many, [4.0] * many] for many in (1, 3))
    assert level_interval(thrice) == pytest.approx(level_interval(once))
    assert level_interval([[1.0, 4.0], [2.0], [2.0]]) == pytest.approx((2.0, 2.0))


def test_one_round_has_no_interval():
    assert level_interval([[2.0, 3.0]]) is None
    assert level_interval([]) is None
