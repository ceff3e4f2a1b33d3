"""Percentiles of few steps, and of many."""

import numpy as np
import pytest

from kit.stats.shape import percentile_ns


@pytest.mark.parametrize(("percent", "needed"), [(95, 20), (99, 100)])
def test_a_percentile_needs_a_step_above_it(percent, needed):
    assert percentile_ns(np.arange(needed - 1), percent) is None
    assert percentile_ns(np.arange(needed), percent) == pytest.approx(needed - 1, abs=1)


def test_few_steps_do_not_pull_it_down():
    rng = np.random.default_rng(1)
    percentiles = [percentile_ns(rng.integers(0, 1_000_000, 20), 95) for _ in range(4000)]
    assert np.median(percentiles) == pytest.approx(950_000, rel=0.02)
