import math

import numpy as np
import pytest

from kit.stats.rounds import BlockArrays, cycle_log_ratios, launch_time_ns, mean_step_ns, round_log_ratio


def blocks(step_ns, cycle=None, stall=0.0):
    """Blocks of 50 steps, `step_ns` long but for the stalls, which make the whole time longer."""
    step_ns = np.asarray(step_ns, np.float64)
    cycle = np.arange(len(step_ns)) if cycle is None else np.asarray(cycle)
    steps = np.full(len(step_ns), 50)
    return BlockArrays(cycle, steps * step_ns * (1 + stall), steps, step_ns)


def test_the_drift_of_the_machine_cancels_within_cycles():
    rng = np.random.default_rng(1)
    drift = np.exp(np.cumsum(rng.normal(0, 0.2, 12)))
    a, b = blocks(3e6 * drift), blocks(2e6 * drift)
    assert round_log_ratio(a, b, paired=True) == pytest.approx(math.log(1.5))
    assert cycle_log_ratios(a, b) == pytest.approx([math.log(1.5)] * 12)


def test_cycles_are_matched_by_number_and_what_only_one_has_is_left_out():
    drift = np.array([1.0, 2.0, 4.0, 8.0])
    a = blocks(3e6 * drift[[3, 0, 1]], cycle=[3, 0, 1])
    b = blocks(2e6 * drift[[0, 1, 2]], cycle=[0, 1, 2])
    assert round_log_ratio(a, b, paired=True) == pytest.approx(math.log(1.5))


def test_stalls_are_in_the_step_time_and_not_in_the_latency():
    stalling, steady = blocks([2e6] * 12, stall=0.3), blocks([2e6] * 12)
    assert round_log_ratio(stalling, steady, paired=True) == pytest.approx(math.log(1.3))
    assert round_log_ratio(stalling, steady, paired=True, by="latency") == 0


def test_members_that_did_not_take_turns_are_compared_by_their_medians_over_blocks():
    a, b = blocks([3e6, 3e6, 9e6]), blocks([2e6, 4e6, 2e6], cycle=[7, 8, 9])
    assert round_log_ratio(a, b, paired=False) == pytest.approx(math.log(1.5))


def test_without_a_common_cycle_there_is_no_ratio():
    for other in (blocks([2e6], cycle=[1]), blocks([]), blocks([0])):
        assert round_log_ratio(other, blocks([2e6]), paired=True) is None
    assert round_log_ratio(blocks([]), blocks([2e6]), paired=False) is None


def test_blocks_of_an_accelerators_fit_have_no_latency():
    pipelined = blocks([2e6] * 3)._replace(latency_ns=np.full(3, np.nan))
    assert math.isnan(launch_time_ns(pipelined, "latency"))
    assert round_log_ratio(pipelined, blocks([2e6] * 3), paired=True, by="latency") is None


def test_a_launch_is_the_median_over_blocks_and_a_fit_its_whole_time():
    launch = blocks([1, 2, 9])
    assert launch_time_ns(launch) == 2
    assert mean_step_ns(launch) == 4
