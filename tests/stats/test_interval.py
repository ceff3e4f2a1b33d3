import numpy as np
import pytest
import scipy.stats

from kit.stats.interval import geometric_estimate, inverse, mean_estimate, scaled


@pytest.mark.parametrize("launches", [2, 3, 10])
def test_intervals_are_those_of_scipy(launches):
    values = np.random.default_rng(launches).lognormal(3, 0.1, launches)
    low, high = scipy.stats.t.interval(
        0.95, launches - 1, loc=np.log(values).mean(), scale=scipy.stats.sem(np.log(values))
    )
    estimate = geometric_estimate(list(values))
    assert estimate.value == pytest.approx(scipy.stats.gmean(values), rel=1e-12)
    assert (estimate.low, estimate.high) == pytest.approx((np.exp(low), np.exp(high)), rel=1e-9)
    low, high = scipy.stats.t.interval(0.95, launches - 1, loc=values.mean(), scale=scipy.stats.sem(values))
    assert (mean_estimate(list(values)).low, mean_estimate(list(values)).high) == pytest.approx((low, high), rel=1e-9)


def test_one_launch_has_no_interval_and_none_has_no_estimate():
    estimate = geometric_estimate([5.0])
    assert (estimate.value, estimate.low, estimate.high, estimate.launches) == (pytest.approx(5.0), None, None, 1)
    assert geometric_estimate([]) is None
    assert mean_estimate([]) is None


def test_a_rate_turns_the_interval_around():
    time = geometric_estimate([1.0, 2.0, 4.0])
    rate = inverse(time, 10.0)
    assert rate.low < rate.value < rate.high
    assert rate.low == pytest.approx(10 / time.high)
    assert scaled(time, 0.5).high == pytest.approx(time.high / 2)
    assert inverse(None, 1.0) is None
    assert inverse(geometric_estimate([2.0]), 10.0).low is None
