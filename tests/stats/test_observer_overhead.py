import numpy as np
import pytest
from profile_builder import build_blank_launch, build_cell

from kit.profile.launch import ObserverBlocks
from kit.stats.observer_overhead import observer_overhead

KEY = build_cell().key


def launch_with(on, off, on_mean=None, off_mean=None, reason=None):
    launch = build_blank_launch(KEY)
    launch.observer = ObserverBlocks(
        on_ns=on,
        off_ns=off,
        on_mean_ns=on if on_mean is None else on_mean,
        off_mean_ns=off if off_mean is None else off_mean,
        steps_per_block=50,
        reason=reason,
    )
    return launch


def blocks(rng, pairs, ratio, spread=0.02, drift=0.5):
    """Blocks whose pace drifts by half over the test, each with its own disturbance."""
    pace = 4e6 * np.linspace(1, 1 + drift, pairs)
    on = ratio * pace * np.exp(rng.normal(0, spread, pairs))
    off = pace * np.exp(rng.normal(0, spread, pairs))
    return on.astype(int).tolist(), off.astype(int).tolist()


@pytest.mark.parametrize("ratio", [1.0, 1.01, 1.1])
def test_a_planted_cost_lies_within_the_interval_as_often_as_it_says(ratio):
    rng = np.random.default_rng(1)
    found = [observer_overhead(launch_with(*blocks(rng, 30, ratio))) for _ in range(400)]
    held = sum(one.low <= ratio <= one.high for one in found)
    # 95 % of 400 is 380; a correct interval holds 366 to 392 times in 99.8 % of such tests (binomial).
    assert 366 <= held <= 392
    assert np.mean([one.ratio for one in found]) == pytest.approx(ratio, rel=0.001)


def test_the_mean_sees_what_the_median_of_the_steps_does_not():
    found = observer_overhead(launch_with([100] * 5, [100] * 5, on_mean=[104] * 5, off_mean=[100] * 5))
    assert (found.ratio, found.low, found.high) == (1, 1, 1)
    assert found.mean_ratio == pytest.approx(1.04)
    assert found.pairs == 5
    assert found.reason is None


def test_no_blocks_give_null_and_the_reason():
    found = observer_overhead(launch_with([], [], reason="the sampler was killed: signal 9"))
    assert (found.ratio, found.low, found.high, found.mean_ratio, found.mean_low, found.mean_high) == (None,) * 6
    assert found.pairs == 0
    assert found.reason == "the sampler was killed: signal 9"


def test_a_launch_that_failed_before_it_says_where():
    found = observer_overhead(build_blank_launch(KEY, failure="out of memory", phase="steady"))
    assert found.ratio is None
    assert found.reason == "in steady: out of memory"
    assert found.cell_key == KEY
