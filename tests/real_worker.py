"""A real worker behind its supervisor, asked by the runner's own code."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kit.profile.cell import Cell, Variant
from kit.profile.schema import Group, StepPlan
from kit.runner.interrupt import StopFlag
from kit.runner.round_worker import RoundWorker
from kit.runner.worker_processes import Ranks
from kit.runner.worker_spec import WorkerSpec
from kit.suites.groups import WorkerPlan
from kit.worker.messages import Join, Prepare

PLANTED = Path(__file__).parent / "faults" / "planted"
# With the kit of this checkout, whichever is installed.
PYTHONPATH = f"{PLANTED}{os.pathsep}{Path(__file__).parents[1]}"
PLAN = StepPlan(cycles=2, block_s=0.05, lead_in_s=0.005, warmup_s=0.1, warmup_steps=5, energy_s=0.0)
GROUP = "test"


def cell(backend="torch", task="train", **more):
    fields = {"workload": "mlp", "device": "cpu", "batch": 32, "precision": "float32", "feed": "device"}
    return Cell(**(fields | {"backend": backend, "task": task, "compile_mode": "eager"} | more))


def spec_of(*cells, ranks=1, cpus=None, data="synthetic", proves=False, env=(), **variant):
    """What a worker of these cells is started with."""
    first = cells[0]
    return WorkerSpec(
        cells=cells,
        variant=Variant(name="default", python=sys.executable, env={"PYTHONPATH": PYTHONPATH} | dict(env), **variant),
        prepare=Prepare(
            backend=first.backend,
            device=first.device,
            clock="monotonic_raw",
            cpus=cpus or sorted(os.sched_getaffinity(0))[:1],
            parts=ranks,
            devices=first.devices,
        ),
        join=Join(devices=first.devices // ranks if first.devices > 1 else 0, threads=1),
        ranks=ranks,
        data={"mnist": data, "uci_har": data},
        proves=proves,
    )


def block_of(worker, key, cycle, seconds, turns=1):
    """A block of a cell that no other cell takes turns with, and its steps; None where the cell has failed."""
    for _ in range(turns):
        if worker.take_turn(key, seconds, turns):
            break
    return worker.end_block(key, cycle, turns)


@contextmanager
def worker_of(spec, asked=Ranks, **plan):
    """The runner's side of a started worker; ended with the body. `asked` may stand in for the processes."""
    group = Group(key=GROUP, cells=[cell.key for cell in spec.cells], baseline=spec.cells[0].key)
    steps = msgspec.structs.replace(PLAN, **plan)
    worker = RoundWorker(WorkerPlan("test", list(spec.cells)), spec, asked(spec, StopFlag()), steps, [group], 0)
    try:
        worker.prepare()
        yield worker
    finally:
        worker.end()


def launch_of(worker, cell):
    return worker.launches[cell.key, GROUP]


def fitted(worker, cell):
    """Run a fit to its end; return its blocks."""
    worker.build(cell.key, GROUP)
    worker.warm_up(cell.key, GROUP)
    blocks, left = [], 1
    while left:
        block, step_ns, left = worker.stretch(cell.key, len(blocks))
        worker.add(cell.key, GROUP, block, step_ns)
        blocks.append(block)
    return blocks
