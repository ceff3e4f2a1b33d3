"""Half-widths, how many launches a precision takes, and what stopping at it does to the interval's coverage."""

import math

import numpy as np
import pytest

from kit.stats.interval import geometric_estimate
from kit.stats.precision import (
    SEQUENTIAL_LAUNCHES_MAX,
    SEQUENTIAL_LAUNCHES_MIN,
    half_width,
    launches_to_precision,
)


def test_the_half_width_is_that_of_the_interval():
    values = [1.00e6, 1.03e6, 0.98e6, 1.01e6]
    estimate = geometric_estimate(values)
    assert half_width(values) == pytest.approx(estimate.high / estimate.value - 1)


def test_one_launch_has_none():
    assert half_width([1e6]) is None
    assert launches_to_precision([1e6], 0.02) == SEQUENTIAL_LAUNCHES_MAX


def test_as_many_launches_as_bring_it_below():
    values = list(np.exp(np.linspace(-0.05, 0.05, 8)) * 1e6)
    spread = np.log(values).std(ddof=1)
    n = launches_to_precision(values, 0.02)
    from scipy.stats import t

    assert t.ppf(0.975, n - 1) * spread / math.sqrt(n) <= math.log(1.02)
    assert t.ppf(0.975, n - 2) * spread / math.sqrt(n - 1) > math.log(1.02)


def test_what_is_precise_already_needs_no_more_than_the_least():
    assert launches_to_precision([1e6, 1e6, 1e6], 0.02) == SEQUENTIAL_LAUNCHES_MIN


def coverage(spread, precision, least, runs=4000, seed=1):
    """Share of runs whose interval holds the truth, 1.0, when launching stops at the precision."""
    random, held = np.random.default_rng(seed), 0
    for _ in range(runs):
        values = np.exp(random.normal(0, spread, SEQUENTIAL_LAUNCHES_MAX)).tolist()
        n = next(
            (n for n in range(least, SEQUENTIAL_LAUNCHES_MAX) if half_width(values[:n]) <= precision),
            SEQUENTIAL_LAUNCHES_MAX,
        )
        estimate = geometric_estimate(values[:n])
        held += estimate.low <= 1.0 <= estimate.high
    return held / runs


@pytest.mark.parametrize(("spread", "precision"), [(0.01, 0.01), (0.02, 0.01), (0.03, 0.02), (0.05, 0.02)])
def test_stopping_at_a_precision_costs_a_few_percent_of_coverage(spread, precision, record_property):
    found = coverage(spread, precision, SEQUENTIAL_LAUNCHES_MIN)
    record_property("coverage", found)
    print(f"spread {spread:.0%}, precision {precision:.0%}: {found:.3f}")
    assert 0.905 < found < 0.96
