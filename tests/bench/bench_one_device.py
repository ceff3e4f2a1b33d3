"""One device through the many-device path over the ordinary path: prints the ratio of training steps; the goal is 1.02.

    python tests/bench/bench_one_device.py [--backend torch] [--workload cnn] [--seconds 60]

A process a cell, with two programs of it: one built after the process has joined a group of one rank (PyTorch's
DistributedDataParallel, TensorFlow's collectives, JAX' mesh of one device), one without. Their blocks alternate, in a
drawn order; a pair of neighbours gives the logarithm of the ratio of their mean steps.
"""

from __future__ import annotations

import math
import random
import time

from bench_bare_loop import BLOCK_S, STEPS_MIN, WARMUP_S, bare_loop_ns
from measuring import print_paired, worker_spec_of

from kit.backends.backend_catalog import load
from kit.backends.protocol import ALONE, RankGroup
from kit.worker.inputs import feed, load_inputs
from kit.worker.private_network import LOOPBACK
from kit.worker.rank_place import address_of, held_port
from kit.workloads.seeded_arrays import initial_weights


def both(cell):
    """Return the program of the many-device path, and the ordinary one, each with its batches."""
    spec = worker_spec_of(cell)
    joined = load(cell.backend)
    port = held_port(LOOPBACK)
    joined.join(RankGroup(0, (address_of(port),), held=port), "cpu", 1)
    joined.set_threads(spec.join.threads)
    assert joined.count("cpu") == 1
    inputs = load_inputs(cell, next(iter(spec.data.values())), spec.seed, ALONE)
    programs = []
    for backend in (joined, type(joined)()):
        weights = initial_weights(inputs.workload, spec.seed)
        program = backend.build(inputs.workload, cell, weights, spec.seed)
        batches = feed(program, inputs.pool, cell)
        program.trace()
        program.compile()
        programs.append((program, batches))
    return programs


def log_ratios(cell, seconds):
    """Return ln(many-device path / ordinary path) of each pair of blocks."""
    programs = both(cell)
    paces_ns = []
    for program in programs:
        end = time.monotonic() + WARMUP_S
        while time.monotonic() < end:
            pace_ns = bare_loop_ns(*program, STEPS_MIN)
        paces_ns.append(pace_ns)
    steps = max(STEPS_MIN, round(BLOCK_S * 1e9 / min(paces_ns)))
    draw, logs, end = random.Random(0), [], time.monotonic() + seconds
    while time.monotonic() < end or not logs:
        times_ns = {place: bare_loop_ns(*programs[place], steps) for place in draw.sample([0, 1], 2)}
        logs.append(math.log(times_ns[0] / times_ns[1]))
    return logs


if __name__ == "__main__":
    print_paired(__doc__, "many-device path / ordinary", log_ratios, task=["train"])
