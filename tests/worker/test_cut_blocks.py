"""A block ends: of real steps many more are asked for than fit, as where a neighbor came after the pace was taken."""

import os

import numpy as np
import pytest
from real_worker import GROUP, block_of, cell, launch_of, spec_of, worker_of

from kit.runner.warm_up_and_blocks import OVERRUN_MOST, Pace, pieces, planned
from kit.worker.messages import Segment

CPUS = sorted(os.sched_getaffinity(0))
# So many times as long as the pace says do the steps take.
SLOWED = 64


def too_fast(worker, key):
    """Plant a pace that the steps had on a faster machine."""
    program = worker._programs[key]
    pace = program.pace
    waited_ns, pipelined_ns = pace.waited_ns / SLOWED, pace.pipelined_ns / SLOWED
    program.pace = pace._replace(waited_ns=waited_ns, pipelined_ns=pipelined_ns, unevenness=1.0)
    return program


def check_cut(blocks, step_ns=None):
    """The one block was cut, and is as it would be had it been planned so short."""
    (steps,), (asked,), (duration_ns,) = blocks.steps, blocks.planned_steps, blocks.duration_ns
    assert 0 < steps < asked
    assert duration_ns <= blocks.span_ns[0]
    if step_ns is not None:
        timed_ns = step_ns[blocks.lead_in[0] :]
        assert timed_ns.size == steps and timed_ns.sum() == duration_ns
        return timed_ns
    return None


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("backend", "task", "mode"),
    [
        ("torch", "train", "eager"),
        pytest.param("jax", "infer", "jit", marks=pytest.mark.slow),
        pytest.param("tensorflow", "train", "graph", marks=pytest.mark.slow),
    ],
)
def test_a_block_that_takes_longer_than_planned_ends_with_its_true_steps(backend, task, mode):
    measured = cell(backend, task, compile_mode=mode)
    with worker_of(spec_of(measured)) as worker:
        worker.build(measured.key, GROUP)
        worker.warm_up(measured.key, GROUP)
        usual, _ = block_of(worker, measured.key, 0, 0.05)
        pace_ns = too_fast(worker, measured.key).pace.waited_ns
        blocks, step_ns = block_of(worker, measured.key, 1, 0.05)
        timed_ns = check_cut(blocks, step_ns)
        # All but the last step were within the limit, and the last one was not.
        limit_ns = OVERRUN_MOST * blocks.planned_steps[0] * pace_ns
        assert timed_ns[:-1].sum() <= limit_ns < timed_ns.sum()
        # The pace is known again.
        later, _ = block_of(worker, measured.key, 2, 0.05)
        assert later.planned_steps[0] < blocks.planned_steps[0] / 8
        for each in (usual, blocks, later):
            worker.add(measured.key, GROUP, each, np.zeros(0, np.int64))
        worker.conclude(measured.key)
        assert launch_of(worker, measured).failure is None
        assert len(launch_of(worker, measured).blocks.planned_steps) == 3


@pytest.mark.slow
@pytest.mark.frameworks
def test_parts_of_warm_up_and_of_the_long_block_end_and_fill_their_time_all_the_same():
    measured = cell()
    with worker_of(spec_of(measured)) as worker:
        worker.build(measured.key, GROUP)
        program = worker._programs[measured.key]
        program.pace = Pace(1_000.0)  # the first part of the warm-up would have 100,000 steps
        worker.warm_up(measured.key, GROUP)
        assert 5 <= launch_of(worker, measured).warmup_steps < 50_000
        too_fast(worker, measured.key)
        blocks = worker.long_block(measured.key, GROUP, 0.2)
        check_cut(blocks)
        assert blocks.span_ns[0] >= 0.2e9


@pytest.mark.slow
@pytest.mark.frameworks
@pytest.mark.parametrize("feed", ["device", "host"])
def test_a_fit_whose_stretch_is_cut_makes_all_its_updates(feed):
    fit = cell(task="fit", feed=feed, batch=1000)
    with worker_of(spec_of(fit), fit_steps=40) as worker:
        worker.build(fit.key, GROUP)
        worker.warm_up(fit.key, GROUP)
        state, made, cycle, left = worker._programs[fit.key].fit, [], 0, 1
        while left:
            if cycle == 1:
                state._step_ns /= SLOWED  # of the stretch before
            blocks, step_ns, left = worker.stretch(fit.key, cycle)
            made.append(blocks.steps[0])
            assert (blocks.planned_steps[0] > blocks.steps[0]) is (cycle == 1)
            worker.add(fit.key, GROUP, blocks, step_ns)
            cycle += 1
        worker.conclude(fit.key)
        launch = launch_of(worker, fit)
    assert launch.failure is None
    assert sum(made) + 1 == launch.fit.updates == 40


@pytest.mark.slow
@pytest.mark.frameworks
@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU: each of two devices needs one of its own")
def test_ranks_end_a_block_with_the_same_step():
    trained = cell(devices=2)
    with worker_of(spec_of(trained, ranks=2, cpus=CPUS[:2])) as worker:
        worker.build(trained.key, GROUP)
        worker.warm_up(trained.key, GROUP)
        usual, _ = block_of(worker, trained.key, 0, 0.2)
        too_fast(worker, trained.key)
        blocks, step_ns = block_of(worker, trained.key, 1, 0.2)
        check_cut(blocks, step_ns)
        # They still agree: a collective of one rank alone would never end.
        later, _ = block_of(worker, trained.key, 2, 0.2)
        assert launch_of(worker, trained).failure is None
    assert usual.cycle == [0] and later.steps[0] > 0


@pytest.mark.parametrize(
    ("segment", "waits"),
    [
        (planned(1000, 1_000_000.0), 50),  # of a second
        (planned(7, 1_000_000.0), 7),  # shorter than a piece
        (planned(5, 1e9), 1),  # each step is longer
        (planned(12, 10_000_000.0, 4), 1),
        (Segment(3), 3),  # no plan
    ],
)
def test_pieces_have_all_steps_of_their_segment_and_their_share_of_its_limit(segment, waits):
    parts = pieces(segment)
    assert sum(part.steps for part in parts) == segment.steps and parts[0].waits == waits
    assert sum(part.limit_ns for part in parts) == pytest.approx(segment.limit_ns, rel=1e-6)
    assert all(part.per_wait == segment.per_wait for part in parts)
