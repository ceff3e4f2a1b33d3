"""Student's t and intervals of rounds, against scipy.stats, which the product does not import."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from kit.stats.estimate import over, t_below, t_quantile

logs = st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=3, max_size=20).filter(lambda x: np.std(x) > 1e-6)


@given(logs, st.sampled_from([0.9, 0.95, 0.99]))
def test_it_is_students_t_on_the_logarithms(values, level):
    difference, expected = over(values), stats.ttest_1samp(values, 0)
    low, high = expected.confidence_interval(level)
    assert difference.p() == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert [math.log(end) for end in difference.interval(level)] == pytest.approx([low, high])
    assert math.log(difference.ratio) == pytest.approx(np.mean(values), abs=1e-9)
    assert difference.se_log == pytest.approx(stats.sem(values))


@given(st.lists(st.floats(-300, 300), min_size=2, max_size=4), st.floats(0.5, 0.9999))
def test_an_interval_is_finite_and_holds_its_point(values, level):
    difference = over(values)
    low, high = difference.interval(level)
    assert 0 < low <= difference.ratio * (1 + 1e-9)
    assert difference.ratio <= high * (1 + 1e-9) and math.isfinite(high)


def test_below_two_rounds_there_is_no_interval():
    assert not over([]).has_interval
    assert not over([0.1]).has_interval


def test_rounds_that_agree_to_the_last_digit_leave_no_doubt():
    difference = over([0.5] * 3)
    assert (difference.p(), difference.interval()[0]) == (0, pytest.approx(math.exp(0.5)))
    assert over([0.0] * 3).p() == 1


DFS = (0.5, 1.0, 1.7, 2.0, 3.0, 7.0, 13.0, 27.65, 100.0, 1e3, 1e5)


@pytest.mark.parametrize("df", DFS)
def test_probabilities_are_scipys(df):
    for t in (0.0, 1e-9, 0.1, 0.7, 1.0, 2.0, 4.3, 12.7, 40.0, 1e3, 1e8):
        for signed in (t, -t):
            assert t_below(df, signed) == pytest.approx(special.stdtr(df, signed), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("df", DFS)
def test_quantiles_are_scipys(df):
    for p in (1e-6, 0.005, 0.025, 0.05, 0.3, 0.5, 0.9, 0.95, 0.975, 0.99, 1 - 0.05 / 45, 1 - 1e-6):
        assert t_quantile(df, p) == pytest.approx(special.stdtrit(df, p), rel=1e-8, abs=1e-12)


def test_what_is_not_finite_stays_so():
    assert (t_below(3, math.inf), t_below(3, -math.inf)) == (1.0, 0.0)
    assert math.isnan(t_below(3, math.nan))
