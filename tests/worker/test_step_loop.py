"""The step loop against steps of known length."""

import time
from itertools import cycle

import numpy as np
import pytest

from kit import clock
from kit.profile.launch import StepPlan
from kit.worker.step_loop import run_steps, steady_steps, warm_up

STEP_NS = 2_000_000
# A step that busy-waits is late by at most the machine's own disturbance; half of its steps must be nearly on time.
LATE = 1.05


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


def plan(**more):
    fields = {"warmup_s": 0.05, "warmup_steps_min": 3, "steady_s": 0.1, "steps_min": 5, "steps_max": 400}
    return StepPlan(**(fields | more))


def test_known_step_times_come_out():
    program = KnownProgram([STEP_NS])
    stretch = run_steps(program, cycle("ab"), 50, clock.stamps(51), None)
    assert stretch.step_ns.shape == (50,)
    assert stretch.step_ns.min() >= STEP_NS
    assert np.median(stretch.step_ns) <= LATE * STEP_NS
    assert stretch.last_output == 50
    assert program.batches == ["a", "b"] * 25


def test_steps_and_stamps_leave_no_gap():
    begin_ns = clock.now_ns()
    stretch = run_steps(KnownProgram([STEP_NS]), cycle("a"), 50, clock.stamps(51), None)
    around_ns = clock.now_ns() - begin_ns
    assert 0 <= around_ns - stretch.step_ns.sum() < STEP_NS


def test_the_wait_belongs_to_its_own_step():
    lengths = [1_000_000, 3_000_000]
    stretch = run_steps(KnownProgram(lengths), cycle("a"), 40, clock.stamps(41), None)
    # The least of each: other work on this machine lengthens steps, and shortens none.
    assert stretch.step_ns[0::2].min() == pytest.approx(lengths[0], rel=0.2)
    assert stretch.step_ns[1::2].min() == pytest.approx(lengths[1], rel=0.2)


def test_warm_up_lasts_its_time_and_its_steps():
    by_time = warm_up(KnownProgram([STEP_NS]), cycle("a"), plan(warmup_s=0.1), clock.stamps(401), None)
    assert by_time.step_ns.sum() >= 0.1e9 - STEP_NS
    assert len(by_time.step_ns) <= 51
    by_steps = warm_up(
        KnownProgram([STEP_NS]), cycle("a"), plan(warmup_s=0, warmup_steps_min=7), clock.stamps(401), None
    )
    assert len(by_steps.step_ns) == 7
    bounded = warm_up(KnownProgram([1000]), cycle("a"), plan(warmup_s=60), clock.stamps(401), None)
    assert len(bounded.step_ns) == 400


@pytest.mark.parametrize(
    ("warmup_ns", "expected"),
    [
        ([50_000_000] * 5 + [1_000_000] * 10, 100),  # the pace at the end counts, not the slow beginning
        ([1_000] * 20, 400),
        ([10_000_000_000] * 3, 5),
    ],
)
def test_steady_steps_fill_the_time_at_the_pace_of_the_last_steps_within_bounds(warmup_ns, expected):
    assert steady_steps(np.array(warmup_ns, np.int64), plan()) == expected
