import numpy as np
import pytest

from kit.stats.rounds import BlockArrays, launch_step_ns, round_ratio


def blocks(median_ns, cycle=None, stall=0.0):
    median_ns = np.asarray(median_ns, np.int64)
    steps = np.full(len(median_ns), 50)
    cycle = np.arange(len(median_ns)) if cycle is None else np.asarray(cycle)
    return BlockArrays(cycle, median_ns, np.rint(steps * median_ns * (1 + stall)).astype(np.int64), steps)


def test_the_drift_of_the_machine_cancels_within_cycles():
    rng = np.random.default_rng(1)
    drift = np.exp(np.cumsum(rng.normal(0, 0.2, 12)))
    a, b = 3e6 * drift, 2e6 * drift
    assert round_ratio(blocks(a), blocks(b), paired=True).log_ratio == pytest.approx(np.log(1.5), abs=1e-6)


def test_cycles_are_matched_by_number_and_what_only_one_has_is_left_out():
    drift = np.array([1.0, 2.0, 4.0, 8.0])
    a = blocks(3e6 * drift[[3, 0, 1]], cycle=[3, 0, 1])
    b = blocks(2e6 * drift[[0, 1, 2]], cycle=[0, 1, 2])
    assert round_ratio(a, b, paired=True) == pytest.approx((np.log(1.5), np.log(1.5)))


def test_stalls_are_in_the_whole_time_and_not_in_the_median():
    ratio = round_ratio(blocks([2e6] * 12, stall=0.3), blocks([2e6] * 12), paired=True)
    assert ratio.log_ratio == 0
    assert ratio.whole_log_ratio == pytest.approx(np.log(1.3))


def test_members_that_took_whole_turns_are_compared_by_their_medians():
    ratio = round_ratio(blocks([3e6, 3e6, 9e6]), blocks([2e6, 4e6, 2e6], cycle=[7, 8, 9]), paired=False)
    assert ratio.log_ratio == pytest.approx(np.log(1.5))


def test_without_a_common_cycle_there_is_no_ratio():
    nothing = blocks([])
    assert round_ratio(blocks([2e6], cycle=[0]), blocks([2e6], cycle=[1]), paired=True) is None
    assert round_ratio(nothing, blocks([2e6]), paired=True) is None
    assert round_ratio(nothing, blocks([2e6]), paired=False) is None
    assert round_ratio(blocks([0]), blocks([2e6]), paired=True) is None


def test_the_step_of_a_launch_is_the_median_of_its_blocks():
    assert launch_step_ns(np.array([1, 2, 9])) == 2
