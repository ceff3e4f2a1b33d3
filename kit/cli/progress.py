"""Progress of a run, on standard error: on a terminal one live line with the time left, else a line a round.

Drawn between blocks only: no thread refreshes it beside a measured step.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from kit.printable import printable
from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.unfinished import RunPlan
from kit.report.quantity import counted
from kit.runner.rounds import failed_cells
from kit.suites.plan import Bundle, Process, plan_bundles

# A start and its warm-up take about as long as so many blocks of a quarter of a second.
START_BLOCKS = 24


class RunProgress:
    """Shows a run's rounds, from `rounds_done` on; the estimate of the time left is rich's own."""

    def __init__(self, plan: RunPlan, rounds_done: int = 0) -> None:
        self._console = Console(stderr=True, highlight=False)
        bundles = plan_bundles(plan.cells, plan.groups, plan.suite.share)
        blocks = plan.suite.plan.cycles * sum(len(group.cells) for bundle in bundles for group in bundle.groups)
        self._round_units = blocks + START_BLOCKS * sum(len(bundle.processes) for bundle in bundles)
        self._rounds = plan.suite.rounds if plan.suite.precision_pct is None else None
        self._of = "" if self._rounds is None else f" of {self._rounds}"
        self._number = rounds_done
        self._cells = f"{counted(len(plan.cells), 'cell')} in {counted(len(plan.groups), 'group')}"
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            auto_refresh=False,
            disable=not self._console.is_terminal,
            transient=True,
        )
        total = None if self._rounds is None else self._round_units * (self._rounds - rounds_done)
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        rounds = "as many rounds as it takes" if self._rounds is None else counted(self._rounds, "round")
        self._say(f"{self._cells}, {rounds}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def round_begins(self, number: int, bundles: Sequence[Bundle]) -> None:  # noqa: ARG002 - of the protocol
        """Say which round it is."""
        self._number = number

    def starting(self, process: Process) -> None:
        """Say which member starts."""
        names = dict.fromkeys(f"{cell.workload} {cell.task}" for cell in process.cells)
        first = process.cells[0]
        self._show(f"start {first.backend} {' + '.join(names)}", START_BLOCKS)

    def block_done(self, cell: Cell) -> None:
        """Count a block; how many a fit will have nobody knows."""
        self._show(f"{cell.backend} {cell.workload} {cell.task}", 0 if cell.task == "fit" else 1)

    def round_done(self, number: int, launches: Sequence[Launch]) -> None:
        """Count the round; where nothing is drawn, say so in a line."""
        if self._rounds is not None:
            self._bar.update(self._task, completed=self._round_units * (number + 1))
        failed = ", ".join(sorted(failed_cells(launches)))
        done = counted(len(launches), "launch")
        self._say(f"round {number + 1}{self._of} done: {done}{failed and f', failed: {failed}'}")

    def _say(self, line: str) -> None:
        """Print a line where nothing is drawn."""
        if not self._console.is_terminal:
            self._console.print(printable(line), markup=False, soft_wrap=True)

    def _show(self, what: str, units: int) -> None:
        what = f"round {self._number + 1}{self._of} · {printable(what)}"
        self._bar.update(self._task, advance=units, description=what)
        self._bar.refresh()
