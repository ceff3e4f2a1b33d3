"""The step loop, and planted slow-downs, against steps of known length."""

import time
from itertools import count, cycle, pairwise
from types import SimpleNamespace

import pytest

from kit import clock
from kit.worker import step_loop
from kit.worker.messages import Segment
from kit.worker.step_loop import InjectedDelay, run_segments

STEP_NS = 2_000_000


class KnownProgram:
    """Each step returns at once and `synchronize` ends when the steps' known lengths have passed."""

    def __init__(self, lengths_ns):
        self.lengths_ns = cycle(lengths_ns)
        self.batches, self.end_ns, self.waits = [], 0, 0

    def step(self, batch):
        self.batches.append(batch)
        self.end_ns = max(self.end_ns, time.perf_counter_ns()) + next(self.lengths_ns)
        return len(self.batches)

    def synchronize(self):
        self.waits += 1
        while time.perf_counter_ns() < self.end_ns:
            pass


def test_each_step_has_its_own_wait_and_the_next_batch():
    program, stamps = KnownProgram([STEP_NS, 3 * STEP_NS]), clock.Stamps(51)
    last, _ = run_segments(program, cycle("ab"), [Segment(50)], stamps)
    step_ns = stamps.intervals_ns()
    assert step_ns[0::2].min() >= STEP_NS and step_ns[1::2].min() >= 3 * STEP_NS
    assert last == step_ns.size == 50
    assert program.batches == ["a", "b"] * 25


def test_steps_of_a_group_have_one_wait_and_one_stamp():
    program, stamps = KnownProgram([STEP_NS]), clock.Stamps(8)
    last, _ = run_segments(program, cycle("ab"), [Segment(2), Segment(3, 4), Segment(2)], stamps)
    waits_ns = stamps.intervals_ns()
    assert (last, program.waits, waits_ns.size) == (16, 7, 7)
    assert waits_ns[2:5].min() >= 4 * STEP_NS


def test_a_step_that_fails_leaves_nothing_running():
    program = KnownProgram([STEP_NS])

    def batches():
        yield from range(3)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_segments(program, batches(), [Segment(1, 10)], clock.Stamps(2))
    assert program.waits == 1


def test_a_planted_share_is_of_each_steps_own_time_and_is_counted():
    planted, stamps = InjectedDelay(KnownProgram([STEP_NS, 5 * STEP_NS]), 50.0), clock.Stamps(21)
    last, _ = run_segments(planted, cycle("ab"), [Segment(20)], stamps)
    step_ns = stamps.intervals_ns()
    # No step can be shorter than its parts.
    assert step_ns[::2].min() >= 1.5 * STEP_NS and step_ns[1::2].min() >= 7.5 * STEP_NS
    assert 30 * STEP_NS <= planted.injected_ns <= step_ns.sum() - 60 * STEP_NS
    assert last == 20


def test_a_planted_share_of_one_step_is_in_no_later_step(monkeypatch):
    clock_ns = count(0, 100)
    monkeypatch.setattr(step_loop, "now_ns", lambda: next(clock_ns))
    planted = InjectedDelay(SimpleNamespace(step=abs, synchronize=lambda: None), 100.0)
    for _ in range(3):
        planted.step(1)
        planted.synchronize()
    assert planted.injected_ns == 3 * 100


def test_a_segment_ends_with_the_first_wait_past_its_limit_and_the_next_one_begins_anew():
    program, stamps = KnownProgram([STEP_NS]), clock.Stamps(100)
    limit_ns = 3 * STEP_NS - 1
    ran = run_segments(
        program,
        count(),
        [Segment(9, 1, limit_ns), Segment(2, 1, limit_ns), Segment(9, 4, limit_ns), Segment(3)],
        stamps,
    )
    waits_ns = stamps.intervals_ns()
    assert ran.waits[0] <= 3 and ran.waits[2] == 1 and ran.waits[3] == 3
    assert ran.waits[1] in {1, 2}, "another program may have taken the CPU from it"
    # A wait is the last one when it is past the limit, and no earlier.
    ends = [sum(ran.waits[:number]) for number in range(5)]
    for begin, end in pairwise(ends[:4]):
        assert waits_ns[begin : end - 1].sum() <= limit_ns
    assert waits_ns[ends[0] : ends[1]].sum() > limit_ns
    # No batch is taken that no step takes.
    assert program.batches == [*range(ran.output)]
