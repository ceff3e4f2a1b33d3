"""The band expected of two runs, against runs drawn anew."""

import math

import numpy as np
import pytest

from kit.stats.expected_band import expected_band
from kit.stats.verdict import LAUNCHES_FOR_VERDICT

SPREAD = 0.05


def levels(random, resemblance, shape):
    """AR(1) series of ln medians, one a row."""
    fresh = random.standard_normal(shape)
    series = np.empty(shape)
    series[:, 0] = fresh[:, 0]
    for place in range(1, shape[1]):
        series[:, place] = resemblance * series[:, place - 1] + math.sqrt(1 - resemblance**2) * fresh[:, place]
    return SPREAD * series


@pytest.mark.parametrize("resemblance", [0.0, 0.3, 0.54, 0.7])
@pytest.mark.parametrize("launches", [18, 34, 40])
def test_new_comparisons_leave_the_band_about_as_often_as_it_says(resemblance, launches):
    random = np.random.default_rng(3)
    bands = np.log1p([expected_band(1e6 * np.exp(one)) for one in levels(random, resemblance, (400, launches))])
    runs = levels(random, resemblance, (4000, 2 * LAUNCHES_FOR_VERDICT))
    strays = np.abs(runs[:, :LAUNCHES_FOR_VERDICT].mean(axis=1) - runs[:, LAUNCHES_FOR_VERDICT:].mean(axis=1))
    left = np.mean(strays[:, np.newaxis] > bands)
    assert 0.03 <= left <= 0.09


def test_launches_that_are_all_alike_stray_by_nothing():
    assert expected_band([1e6] * 20) == 0.0


def test_a_trend_widens_it_more_than_the_same_launches_shuffled():
    trend = 1e6 * np.exp(np.linspace(0, 0.2, 40))
    assert expected_band(trend) > 3 * expected_band(np.random.default_rng(0).permutation(trend))
