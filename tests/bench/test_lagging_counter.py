"""A short version of the simulation: joules of a counter that lags hold the block's own, or there are none."""

import numpy as np
import pytest
from bench_lagging_counter import drawn, is_held

from kit.sensors.nvml import LAG_MAX_NS

DRAWS = 6


@pytest.mark.parametrize(
    ("kind", "lag_s", "given_least"),
    [
        ("delayed", 0.0, DRAWS),
        ("mean", 0.1, DRAWS),
        ("mean", 0.5, DRAWS),
        ("delayed", 1.0, DRAWS),
        ("mean", 1.0, DRAWS),
        ("capacitor", 1.0, 0),
        ("capacitor", 10.0, 0),
    ],
)
def test_the_error_of_joules_bears_a_lag_up_to_the_longest_that_is_known(kind, lag_s, given_least):
    rng = np.random.default_rng(3)
    draws = [drawn(rng, kind, lag_s, LAG_MAX_NS) for _ in range(DRAWS)]
    given = [of for of in draws if of.energy.joules_j is not None]
    assert len(given) >= given_least
    assert all(is_held(of) for of in given)


def test_without_it_what_ran_before_is_in_the_joules():
    rng = np.random.default_rng(3)
    assert sum(is_held(drawn(rng, "mean", 1.0, 0)) for _ in range(DRAWS)) < DRAWS
