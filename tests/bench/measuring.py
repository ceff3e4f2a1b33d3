"""What the benches share: which cells, a run of rounds, a member outside a round, a ratio with its interval."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import psutil

from kit.backends.backend_catalog import FRAMEWORKS
from kit.backends.entry import THREAD_VARIABLES
from kit.profile.cell import Cell, Variant
from kit.profile.schema import Blocks, Group, Launch, Profile
from kit.profile.store import Steps
from kit.profile.unfinished import folder_of
from kit.runner.interrupt import StopFlag
from kit.runner.prepare import ensure_data, prepare
from kit.runner.progress import RunProgress
from kit.runner.round_worker import RoundWorker
from kit.runner.running import RunUnderWay
from kit.runner.worker_processes import Ranks
from kit.runner.worker_spec import WorkerSpec, usable_cpus
from kit.suites.groups import WorkerPlan
from kit.suites.plan import plan_cells, plan_with
from kit.suites.run_request import RunRequest
from kit.suites.suite import Axes, MeasureTable, Suite, VariantTable
from kit.worker.messages import Join, Prepare
from kit.workloads.workload_catalog import WORKLOADS


class Interval(NamedTuple):
    """A value and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def case_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that choose cells."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=FRAMEWORKS, action="append")
    parser.add_argument("--workload", choices=list(WORKLOADS), action="append")
    parser.add_argument("--task", choices=["train", "infer"], action="append")
    parser.add_argument("--batch", type=int, default=128)
    return parser


def chosen_cells(
    arguments: argparse.Namespace,
    parameters: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    **defaults: list[str],
) -> list[Cell]:
    """Return every combination of what was asked for; what was not is as in `defaults`, or taken whole.

    `parameters`: of those networks that are measured at another size than their own.
    """
    whole = {"workload": ["mlp", "cnn"], "backend": FRAMEWORKS, "task": ["train", "infer"]} | defaults
    taken = {f"{axis}s": getattr(arguments, axis) or names for axis, names in whole.items()}
    tables = [
        Axes(
            **taken | {"workloads": [name]},
            batches=[arguments.batch],
            parameters={parameter: [value] for parameter, value in parameters.get(name, {}).items()},
        )
        for name in taken["workloads"]
    ]
    return plan_cells(Suite(name="bench", title="", cells=tables))


def run_rounds(  # noqa: PLR0917
    out: Path, cells: Sequence[Cell], variants: Sequence[Variant], rounds: int, cycles: int, data: str = "auto"
) -> Profile:
    """Measure cells that are alike but for their variant in rounds; go on with the run where it was interrupted."""
    stop = StopFlag()
    if folder_of(out).exists():
        named = {
            variant.name: VariantTable(python=variant.python, image=variant.image, env=variant.env)
            for variant in variants
        }
        run = RunUnderWay.resume(out, RunRequest(variants=named))
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        measure = MeasureTable(rounds=rounds, cycles=cycles, share=["task"])
        suite = Suite(
            name="bench", title="", compare=["variant"], cells=Axes(workloads=[], backends=[]), measure=measure
        )
        used = ensure_data(cells, data)
        plan = prepare(plan_with(RunRequest(), suite, cells), variants, data=used)
        run = RunUnderWay.begin(out, plan)
    with stop.deferring_interrupts(), RunProgress(run.plan, run.rounds_done) as progress:
        return run.run(progress, stop)


def launches_of(profile: Profile, group: Group) -> dict[str, list[Launch]]:
    """Return cell key -> its launches in the group, by round."""
    launches = {result.key: result.launches for result in profile.cells}
    return {key: [launch for launch in launches[key] if launch.group == group.key] for key in group.cells}


def worker_spec_of(cell: Cell, data: str = "auto") -> WorkerSpec:
    """Return what a worker of one cell is started with, on all usable CPUs."""
    cpus = usable_cpus()
    return WorkerSpec(
        cells=[cell],
        variant=Variant(name=cell.variant),
        prepare=Prepare(backend=cell.backend, device=cell.device, clock="monotonic_raw", cpus=cpus),
        join=Join(devices=0, threads=len(cpus)),
        data=ensure_data([cell], data)[0],
    )


class Held:
    """A real worker, warm and stopped; it runs while it is asked for a block.

    Attributes:
        pid: of the worker, behind its supervisor.
    """

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        spec, group = worker_spec_of(cell), Group(key="bench", cells=[cell.key], baseline=cell.key)
        before = {*psutil.Process().children()}
        asked = Ranks(spec, StopFlag())
        (supervisor,) = {*psutil.Process().children()} - before
        self.worker = RoundWorker(WorkerPlan("bench", [cell]), spec, asked, MeasureTable().plan(), [group], 0)
        try:
            self.worker.prepare()
            self.pid: int = supervisor.children()[0].pid
            self.worker.build(cell.key, "bench")
            self.worker.warm_up(cell.key, "bench")
        except BaseException:
            self.worker.end()
            raise

    def block(self, seconds: float) -> tuple[Blocks, Steps]:
        """Continue, run one block, stop."""
        self.worker.take_turn(self.cell.key, seconds)
        ran = self.worker.end_block(self.cell.key, 0)
        assert ran is not None, self.worker.launches
        return ran


@contextmanager
def held(cells: Sequence[Cell]) -> Iterator[list[Held]]:
    """Start a worker for each cell, one after the other; all end with the body."""
    started: list[Held] = []
    try:
        for cell in cells:
            started.append(Held(cell))
        yield started
    finally:
        for held_worker in started:
            held_worker.worker.end()


def timed(ran: tuple[Blocks, Steps]) -> list[int]:
    """Return the timed steps of a block, nanoseconds."""
    blocks, step_ns = ran
    return step_ns[blocks.lead_in[0] :].tolist()


def median_ratio(logs: Sequence[float]) -> Interval:
    """Return the ratio whose logarithm is the median, with its interval by order statistics (binomial, as normal)."""
    ordered, reach = sorted(logs), 0.98 * math.sqrt(len(logs))
    low, high = math.floor(len(logs) / 2 - reach), math.ceil(len(logs) / 2 + reach)
    ends = statistics.median(ordered), ordered[max(low, 0)], ordered[min(high, len(logs) - 1)]
    return Interval(*map(math.exp, ends))


def name_of(cell: Cell) -> str:
    """Return the cell as the benches print it."""
    return f"{cell.backend} {cell.workload} {cell.task}"


def printed(rows: Sequence[Sequence[Any]]) -> None:
    """Print rows in columns, the first one to the left."""
    widths = [max(len(str(row[place])) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        first, *others = (str(value) for value in row)
        print("  ".join([first.ljust(widths[0]), *(text.rjust(widths[at + 1]) for at, text in enumerate(others))]))


def print_paired(
    description: str | None, title: str, log_ratios: Callable[[Cell, float], Sequence[float]], **defaults: list[str]
) -> None:
    """Print the median of `log_ratios(cell, seconds)` for each chosen cell, measured in a process of its own."""
    parser = case_parser(description)
    parser.add_argument("--seconds", type=float, default=60.0, help="of measuring a cell (default: 60)")
    parser.add_argument("--child", type=int, help="measure the cell of this number and print its pairs as JSON")
    arguments = parser.parse_args()
    cells = chosen_cells(arguments, **defaults)
    if arguments.child is not None:
        print(json.dumps(log_ratios(cells[arguments.child], arguments.seconds)))
        return
    rows: list[tuple[Any, ...]] = [(title, "ratio [95 %]", "pairs")]
    for place, cell in enumerate(cells):
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(len(usable_cpus())))
        command = [sys.executable, *sys.argv, "--child", str(place)]
        child = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        logs = json.loads(child.stdout.splitlines()[-1]) if child.returncode == 0 else []
        rows.append((name_of(cell), median_ratio(logs) if logs else "failed", len(logs)))
        print(*rows[-1], file=sys.stderr)
    printed(rows)
