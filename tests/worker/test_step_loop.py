"""The step loop, and planted slow-downs, against steps of known length."""

import time
from itertools import cycle

import numpy as np
import pytest

from kit import clock
from kit.worker.injected_delay import InjectedDelay
from kit.worker.step_loop import STEPS_MAX, block_steps, run_for, run_steps, run_until

STEP_NS = 2_000_000


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


def test_each_step_has_its_own_wait_and_the_next_batch():
    program = KnownProgram([STEP_NS, 3 * STEP_NS])
    step_ns, last = run_steps(program, cycle("ab"), 50, clock.stamps(51), None)
    assert step_ns[0::2].min() >= STEP_NS and step_ns[1::2].min() >= 3 * STEP_NS
    assert last == step_ns.size == 50
    assert program.batches == ["a", "b"] * 25


@pytest.mark.parametrize(
    ("step_ns", "seconds", "least", "steps"), [(STEP_NS, 0.1, 1, 51), (STEP_NS, 0.0, 7, 7), (1000, 60.0, 1, 400)]
)
def test_it_lasts_its_time_and_its_steps_and_no_longer_than_its_stamps(step_ns, seconds, least, steps):
    ran, _ = run_until(KnownProgram([step_ns]), cycle("a"), seconds, least, clock.stamps(401), None)
    assert least <= len(ran) <= steps
    assert ran.sum() >= 1e9 * seconds - STEP_NS or len(ran) == 400


def test_a_block_for_energy_lasts_its_time_however_short_its_steps_are():
    """Of 200,000 steps of 1 µs a block of stamped steps would have ended."""
    steps, duration_ns, last = run_for(KnownProgram([0]), cycle("a"), 0.6)
    assert duration_ns >= 600_000_000
    assert steps == last > 0
    stamped, _ = run_until(KnownProgram([0]), cycle("a"), 0.6, 1, clock.stamps(1001), None)
    assert stamped.sum() < 600_000_000 < duration_ns


def test_a_planted_share_is_of_each_steps_own_time_and_is_counted():
    planted = InjectedDelay(KnownProgram([STEP_NS, 5 * STEP_NS]), 50.0)
    step_ns, last = run_steps(planted, cycle("ab"), 20, clock.stamps(21), None)
    # No step can be shorter than its parts.
    assert step_ns[::2].min() >= 1.5 * STEP_NS and step_ns[1::2].min() >= 7.5 * STEP_NS
    assert 30 * STEP_NS <= planted.injected_ns <= step_ns.sum() - 60 * STEP_NS
    assert last == 20


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
