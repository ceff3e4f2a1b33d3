import numpy as np
import pytest

from kit.stats.shape import trending


def rounds(rng, count=8, cycles=12, trend=0.0, noise=0.03):
    """Log-ratios that move by `trend` from the first cycle to the last."""
    return [
        rng.normal(0, 0.05) + rng.normal(0, noise, cycles) - trend * np.linspace(0, 1, cycles) for _ in range(count)
    ]


def test_a_warm_up_that_was_too_short_shows():
    (trend,) = trending([rounds(np.random.default_rng(1), trend=0.12)])
    low, high = trend.interval()
    assert low < np.exp(-0.08) < high < 1  # thirds lie two thirds apart
    assert trend.count == 8


def test_what_does_not_matter_is_no_trend():
    rng = np.random.default_rng(2)
    assert trending([rounds(rng, trend=0.006, noise=0.001)]) == [None]


@pytest.mark.parametrize(("count", "members"), [(3, 1), (8, 1), (8, 24)])
def test_false_alarms_are_at_most_nominal_of_however_many_members(count, members):
    rng = np.random.default_rng(count)
    repeats = 1000 if members == 1 else 200
    alarms = [any(trending([rounds(rng, count) for _ in range(members)])) for _ in range(repeats)]
    assert np.mean(alarms) < (0.065 if members == 1 else 0.09)  # of 200 more come by chance once in a hundred times


def test_too_few_rounds_or_cycles_say_nothing():
    rng = np.random.default_rng(4)
    members = [rounds(rng, count=2, trend=0.5), rounds(rng, cycles=5, trend=0.5), []]
    assert trending(members) == [None] * 3
    assert trending([[*rounds(rng, count=3, trend=0.5), *rounds(rng, cycles=2)]])[0].count == 3
