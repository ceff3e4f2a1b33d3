"""The step loop, and planted slow-downs, against steps of known length."""

import time
from itertools import cycle

import numpy as np
import pytest

from kit import clock
from kit.worker.injected_delay import InjectedDelay
from kit.worker.step_loop import STEPS_MAX, block_steps, run_steps, run_until

STEP_NS = 2_000_000
# A step that busy-waits is late by the machine's own disturbance alone: of fifty the least disturbed is not this late.
LATE = 1.5


class KnownProgram:
    """Each step returns at once and `synchronize` ends when the step's known length has passed."""

    def __init__(self, lengths_ns):
        self.lengths_ns = cycle(lengths_ns)
        self.batches = []

    def step(self, batch):
        self.batches.append(batch)
        self.end_ns = time.perf_counter_ns() + next(self.lengths_ns)
        return len(self.batches)

    def synchronize(self):
        while time.perf_counter_ns() < self.end_ns:
            pass


def test_known_step_times_come_out():
    program = KnownProgram([STEP_NS])
    step_ns, last = run_steps(program, cycle("ab"), 50, clock.stamps(51), None)
    assert step_ns.shape == (50,)
    assert step_ns.min() >= STEP_NS
    assert step_ns.min() <= LATE * STEP_NS
    assert last == 50
    assert program.batches == ["a", "b"] * 25


def test_steps_and_stamps_leave_no_gap():
    gaps_ns = []
    for _ in range(5):
        begin_ns = clock.now_ns()
        step_ns, _ = run_steps(KnownProgram([STEP_NS]), cycle("a"), 50, clock.stamps(51), None)
        gaps_ns.append(clock.now_ns() - begin_ns - step_ns.sum())
    assert 0 <= min(gaps_ns) < STEP_NS  # the machine may stop us at an end of some of them


def test_the_wait_belongs_to_its_own_step():
    short_ns, long_ns = 200_000, 600_000
    step_ns, _ = run_steps(KnownProgram([short_ns, long_ns]), cycle("a"), 200, clock.stamps(201), None)
    # The least of each: other work on this machine lengthens steps, and shortens none.
    assert short_ns <= step_ns[0::2].min() < long_ns <= step_ns[1::2].min()


def test_it_lasts_its_time_and_its_steps():
    by_time, _ = run_until(KnownProgram([STEP_NS]), cycle("a"), 0.1, 1, clock.stamps(401), None)
    assert by_time.sum() >= 0.1e9 - STEP_NS
    assert len(by_time) <= 51
    by_steps, _ = run_until(KnownProgram([STEP_NS]), cycle("a"), 0.0, 7, clock.stamps(401), None)
    assert len(by_steps) == 7
    bounded, _ = run_until(KnownProgram([1000]), cycle("a"), 60.0, 1, clock.stamps(401), None)
    assert len(bounded) == 400


@pytest.mark.parametrize(
    ("last_ns", "expected"),
    [
        ([50_000_000] * 5 + [1_000_000] * 10, (20, 230)),  # the pace at the end counts, not the slow beginning
        ([1_000] * 20, (20_000, STEPS_MAX)),
        ([100_000_000] * 3, (1, 2)),
        ([10_000_000_000] * 3, (1, 2)),
        ([0] * 3, (STEPS_MAX, STEPS_MAX)),
    ],
)
def test_a_block_is_filled_at_the_pace_of_the_last_steps_within_bounds(last_ns, expected):
    assert block_steps(np.array(last_ns, np.int64), lead_in_s=0.02, seconds=0.25) == expected


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_what_is_planted_is_in_the_steps_and_is_counted(share):
    planted = InjectedDelay(KnownProgram([STEP_NS]), 100 * share)
    step_ns, last = run_steps(planted, cycle("ab"), 50, clock.stamps(51), None)
    # No step can be shorter than its parts; other work on the machine makes most of them longer, not all.
    assert STEP_NS <= step_ns.min() / (1 + share) <= LATE * STEP_NS
    assert 50 * share * STEP_NS <= planted.injected_ns <= step_ns.sum() - 50 * STEP_NS
    assert last == 50


def test_a_planted_share_is_of_each_steps_own_time_whatever_the_pace_was_before():
    planted = InjectedDelay(KnownProgram([STEP_NS, 5 * STEP_NS]), 50.0)
    step_ns, _ = run_steps(planted, cycle("ab"), 20, clock.stamps(21), None)
    short, long = step_ns[::2], step_ns[1::2]
    assert short.min() >= 1.5 * STEP_NS and long.min() >= 7.5 * STEP_NS
    assert 30 * STEP_NS <= planted.injected_ns < step_ns.sum()
