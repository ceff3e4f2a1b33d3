"""Kit step over bare loop: prints the ratio of each of twelve cells with its 95 % interval; the goal is within 1 %.

    python tests/bench/bench_bare_loop.py [--backend torch] [--workload mlp] [--task train] [--seconds 60]

One process a cell, one program, the same batches: short blocks of the kit's own step loop (`kit.worker.step_loop`, a
stamp after each step) alternate with blocks of a plain loop, which `time.perf_counter_ns` times as a whole. The order
within a pair is drawn. A pair gives the logarithm of the ratio of the two mean steps; the answer is their median, so
that what the machine does for longer than two blocks falls out.
"""

from __future__ import annotations

import gc
import math
import random
import time
from itertools import islice

from measuring import print_paired, worker_spec_of

from kit import clock
from kit.backends.backend_catalog import load
from kit.backends.protocol import ALONE
from kit.runner.worker_spec import usable_cpus
from kit.worker.inputs import feed, load_inputs
from kit.worker.messages import Segment
from kit.worker.step_loop import run_segments
from kit.workloads.seeded_arrays import initial_weights
from kit.workloads.workload_catalog import workload as workload_of

# Long enough that a loop's begin and end are nothing beside it, short against the drift of a machine.
BLOCK_S = 0.05
STEPS_MIN = 2
WARMUP_S = 2.0


def built(cell):
    """Return the cell's program, compiled, and its host batches; as a member of a round has them."""
    spec = worker_spec_of(cell)
    backend = load(cell.backend)
    inputs = load_inputs(cell, next(iter(spec.data.values())), spec.seed, ALONE)
    workload = workload_of(cell.workload, cell.parameters)
    program = backend.build(workload, cell, initial_weights(workload, spec.seed), spec.seed)
    program.trace()
    program.compile()
    gc.collect()
    gc.freeze()
    return program, inputs.pool


def bare_loop_ns(program, batches, steps):
    """Return the nanoseconds of a step, as anyone would time a loop."""
    begin_ns = time.perf_counter_ns()
    for batch in islice(batches, steps):
        output = program.step(batch)  # noqa: F841 - kept until the next one is there, as a loop that uses it would
        program.synchronize()
    return (time.perf_counter_ns() - begin_ns) / steps


def kit_loop_ns(program, batches, steps):
    """Return the mean of what the kit's own step loop stamps."""
    stamps = clock.Stamps(steps + 1, "monotonic_raw")
    run_segments(program, batches, [Segment(steps)], stamps)
    step_ns = stamps.intervals_ns()
    return float(step_ns.mean())


def log_ratios(cell, seconds):
    """Return ln(kit / bare) of each pair of blocks, measured in this process."""
    load(cell.backend).set_threads(len(usable_cpus()))
    program, pool = built(cell)
    batches = feed(program, pool, cell)
    end = time.monotonic() + WARMUP_S
    while time.monotonic() < end:
        pace_ns = bare_loop_ns(program, batches, STEPS_MIN)
    steps = max(STEPS_MIN, round(BLOCK_S * 1e9 / pace_ns))
    draw, logs, end = random.Random(0), [], time.monotonic() + seconds
    while time.monotonic() < end or not logs:
        sides = [kit_loop_ns, bare_loop_ns]
        times = {side: side(program, batches, steps) for side in draw.sample(sides, 2)}
        logs.append(math.log(times[kit_loop_ns] / times[bare_loop_ns]))
    return logs


if __name__ == "__main__":
    print_paired(__doc__, "kit step / bare loop", log_ratios)
