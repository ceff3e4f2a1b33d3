"""Progress of a run, on standard error: on a terminal one live line, else a line at least every half a minute.

Drawn between blocks only: no thread refreshes it beside a measured step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kit.compare.naming import cell_names
from kit.printable import printable
from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.unfinished import RunPlan
from kit.report.quantity import about, counted
from kit.report.run_plan import summary
from kit.runner.next_round import failed_cells
from kit.runner.time_left import TimeLeft
from kit.suites.plan import MemberPlan, SharedGroups
from kit.worker.messages import Done

# A line comes with the first block or start after it, so that none is missing for longer than half a minute.
LINE_EVERY_S = 20.0


class RunProgress:
    """Shows a run's rounds, from `rounds_done` on."""

    def __init__(self, plan: RunPlan, rounds_done: int = 0) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._of = "" if plan.suite.precision_pct is not None else f" of {plan.suite.rounds}"
        self._number = rounds_done
        self._names = cell_names(plan.cells)
        self._time = TimeLeft(plan, rounds_done)
        self._line_s = 0.0  # when the last line was printed
        self._summary = summary(plan, self._time.estimate())
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            auto_refresh=False,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("", total=1.0, left="")

    def __enter__(self) -> Self:
        self._console.print(printable(self._summary), markup=False, soft_wrap=True)
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def round_begins(self, number: int, shared: Sequence[SharedGroups]) -> None:
        """Say which round it is."""
        self._number = number
        self._time.round_begins(number, shared)

    def starting(self, member: MemberPlan) -> None:
        """Say which member starts."""
        names = list(dict.fromkeys(f"{cell.workload} {cell.task}" for cell in member.cells))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        self._show(f"start {member.cells[0].backend} {names[0]}{more}")

    def block_done(self, cell: Cell, done: Done) -> None:
        """Say what is measured."""
        self._time.block_done(cell, done)
        self._show(f"{cell.backend} {cell.workload} {cell.task}")

    def round_done(self, number: int, launches: Sequence[Launch]) -> None:
        """Say that the round is done, where nothing is drawn."""
        self._time.round_done()
        failed = ", ".join(sorted(self._names[key] for key in failed_cells(launches)))
        done = counted(len(launches), "launch")
        self._print(f"round {number + 1}{self._of} done: {done}{failed and f', failed: {failed}'}")

    def _show(self, what: str) -> None:
        left, spent_s = self._time.estimate(), self._bar.tasks[0].elapsed or 0.0
        share = spent_s / max(1e-9, spent_s + left.seconds)
        left_words = f"{about(left.seconds, is_least=left.is_least)} left"
        where = f"round {self._number + 1}{self._of} · {printable(what)}"
        self._bar.update(self._task, completed=share, description=where, left=left_words)
        self._bar.refresh()
        if spent_s - self._line_s >= LINE_EVERY_S:
            self._print(f"{where} · {100 * share:.0f} % · {left_words}")

    def _print(self, line: str) -> None:
        """Print a line where nothing is drawn."""
        if not self._console.is_terminal:
            self._line_s = self._bar.tasks[0].elapsed or 0.0
            self._console.print(printable(line), markup=False, soft_wrap=True)
