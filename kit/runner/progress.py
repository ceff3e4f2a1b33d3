"""What a run says on standard error: before its first round what other programs use of the CPUs, then its progress.

While other programs use them, it may wait for them to stop. Progress is one live line on a terminal, else a line at
least every half a minute; it is drawn between blocks only: no thread refreshes it beside a measured step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kit.clock import now_ns
from kit.compare.clean import OTHERS_MEAN_MOST, OTHERS_MOST
from kit.compare.naming import cell_names, says_task
from kit.fingerprint.machine_state import others_now
from kit.printable import printable
from kit.profile.cell import Cell
from kit.profile.schema import Blocks, Launch
from kit.profile.unfinished import RunPlan
from kit.report.plan_report import Ahead, foresight, summary
from kit.report.reasons_in_words import sentence
from kit.report.values_in_words import about, counted
from kit.runner.interrupt import StopFlag
from kit.runner.rounds_left import RepeatsToCome, failed_cells
from kit.runner.time_left import TimeLeft
from kit.runner.warm_up_and_blocks import OVERRUN_MOST
from kit.suites.groups import Bundle, WorkerPlan
from kit.suites.run_request import OPTIONS

# One look may fall between two bursts.
QUIET_LOOKS = 3
# While a run waits, it says this often what others use.
WAIT_LINE_EVERY_S = 30.0
# An estimate that is so many times the last one that was said is said again.
LONGER = 1.5
# A line comes with the first block or start after it, so that none is missing for longer than half a minute.
LINE_EVERY_S = 20.0


def wait_for_quiet(plan: RunPlan, seconds: float, stop: StopFlag, say: Callable[[str], None]) -> None:
    """Say what others use of a run's CPUs where that disturbs it, and wait until they stop, for `seconds` at most.

    Raises:
        KeyboardInterrupt: it was asked for.
    """
    begin_ns, said_s = now_ns(), -WAIT_LINE_EVERY_S
    quiet, leaves_cpus = 0, _leaves_cpus(plan)
    while quiet < (QUIET_LOOKS if seconds else 1):
        stop.check()
        others = others_now(plan.cpus, OTHERS_MOST)
        quiet = quiet + 1 if others.is_quiet else 0
        spent_s = (now_ns() - begin_ns) / 1e9
        if not others.is_quiet and spent_s - said_s >= WAIT_LINE_EVERY_S:
            waiting = f"waiting up to {seconds - spent_s:.0f} s"
            again = f"disturbed cycles will be measured again{leaves_cpus}"
            say(f"{sentence(others.reason)}; {waiting if seconds else again}")
            said_s = spent_s
        if spent_s >= seconds and not quiet:
            if seconds:
                void = "while they run no cycle counts, and there is no verdict"
                say(f"other programs did not stop within {seconds:g} s; measuring anyway: {void}{leaves_cpus}")
            return


def _leaves_cpus(plan: RunPlan) -> str:
    """Return what leaves others a CPU, as the end of a line; nothing where cells on a CPU have one thread anyway."""
    threads = [len(plan.cpus) if cell.threads is None else cell.threads for cell in plan.cells if cell.device == "cpu"]
    return f" ({OPTIONS['threads']} 1 leaves them CPUs)" if max(threads, default=1) > 1 else ""


class RunProgress:
    """Shows a run's rounds, from `rounds_done` on."""

    def __init__(self, plan: RunPlan, rounds_done: int = 0, budget_s: float | None = None) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._of = "" if plan.suite.precision_pct is not None else f" of {plan.suite.rounds}"
        self._number, self._rounds = rounds_done, plan.suite.rounds
        self._names = cell_names(plan.cells)
        self._time = TimeLeft(plan, rounds_done, budget_s)
        self._line_s = 0.0  # when the last line was printed
        self._others = ""  # what others took in the last cycle, where they disturbed it
        self._cycles = self._left_out = 0  # of this round
        self._leaves_cpus = _leaves_cpus(plan)
        self._any_clean = False  # cycle of the run so far
        self._any_cut = False  # block of this round
        announced = self._time.estimate()
        self._summary, self._announced_s = summary(plan, announced, budget_s), announced.seconds
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
        self._task = self._bar.add_task("", total=None, left="")

    def __enter__(self) -> Self:
        self._console.print(printable(self._summary), markup=False, soft_wrap=True)
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def round_begins(self, number: int, shared: Sequence[Bundle]) -> None:
        """Say which round it is."""
        self._number, self._others, self._cycles, self._left_out, self._any_cut = number, "", 0, 0, False
        self._time.round_begins(number, shared)

    def begins_anew(self, lost_ns: int) -> None:
        """Take how long it took to see that workers of the round have to run one after another."""
        self._time.begins_anew(lost_ns)

    def starting(self, worker: WorkerPlan) -> None:
        """Say which worker starts."""
        self._time.starting(worker)
        names = list(dict.fromkeys(_what(cell) for cell in worker.cells))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        self._show(f"starting {worker.cells[0].backend} {names[0]}{more}")

    def building(self, cell: Cell) -> None:
        """Say which program is built, which takes seconds to minutes where its framework compiles."""
        self._show(f"building {cell.backend} {_what(cell)}")

    def warming_up(self, cell: Cell, step_s: float) -> None:
        """Say when a cell's warm-up shows that the run takes longer than was announced."""
        self._time.warming_up(cell, step_s)
        self._say_if_longer()

    def block_done(self, cell: Cell, blocks: Blocks, left: int | None) -> None:
        """Say what is measured, and when its block was cut."""
        self._time.block_done(cell, blocks, left)
        what, is_cut, is_news = f"{cell.backend} {_what(cell)}", blocks.cut() > 0, not self._any_cut
        if is_cut:
            self._any_cut = True
            ran = f"{blocks.steps[0]:,} of {blocks.planned_steps[0]:,} steps"
            what += f" · block cut after {ran}, in {OVERRUN_MOST} times its planned time"
        self._show(what, now=is_cut and is_news)
        self._say_if_longer()

    def cycle_done(self, clean: int, planned: int, others: float | None, *, is_repeated: bool) -> None:
        """Say when others disturbed a cycle.

        Args:
            clean: cycles of this group in this round.
            planned: that it is to have.
            others: fraction of the CPUs' time that they took, 0: they computed on the device; null: the cycle is clean.
            is_repeated: another cycle runs in its place.
        """
        self._cycles += 1
        self._time.cycle_done(clean, planned)
        if others is None:
            self._others, self._any_clean = "", True
            return
        self._left_out += 1
        is_news, who = not self._others, f"{100 * others:.0f} % of the CPUs" if others else "the device"
        if others and others <= OTHERS_MOST:
            who += f", and in the mean of the round more than {100 * OTHERS_MEAN_MOST:.0f} %"
        then = "cycle repeated" if is_repeated else "cycle does not count"
        self._others = f" · other programs use {who}: {then} ({clean} of {planned} clean)"
        self._show("", now=is_news)
        self._say_if_longer()

    def round_done(self, number: int, launches: Sequence[Launch], repeats: RepeatsToCome) -> None:
        """Say that the round is done; `repeats`: what is to be measured again."""
        self._time.round_done(repeats)
        failed = ", ".join(sorted(self._names[key] for key in failed_cells(launches)))
        done = [counted(len(launches), "launch"), *([f"failed: {failed}"] if failed else [])]
        if self._left_out:
            none = "" if self._any_clean else f" (no clean cycle yet, so no verdict){self._leaves_cpus}"
            done.append(f"{self._left_out} of {counted(self._cycles, 'cycle')} disturbed{none}")
        line = f"{self._round(number)} done: {', '.join(done)}"
        if self._left_out or not self._console.is_terminal:
            self._print(line)

    def looked_ahead(self, ahead: Ahead) -> None:
        """Say what is foreseen of the run."""
        self._print(foresight(ahead))

    def _say_if_longer(self) -> None:
        """Say how much is left where that is much longer than what was announced, and than what was said since."""
        left = self._time.estimate()
        whole_s = (self._bar.tasks[0].elapsed or 0.0) + left.seconds
        if self._time.knows_steps and whole_s > LONGER * self._announced_s:
            self._announced_s = whole_s
            self._print(f"this takes longer than announced: {about(left.seconds, is_least=left.is_least)} left")

    def _round(self, number: int) -> str:
        """Return ``round 2 of 4``; after those that were planned, ``round 5 (replaces a disturbed one)``."""
        is_again = bool(self._of) and number >= self._rounds
        return f"round {number + 1}{' (replaces a disturbed one)' if is_again else self._of}"

    def _show(self, what: str, *, now: bool = False) -> None:
        """Draw the line, or print it where nothing is drawn and the last one is some time ago, or `now`."""
        left, spent_s = self._time.estimate(), self._bar.tasks[0].elapsed or 0.0
        where = " · ".join(part for part in (self._round(self._number), printable(what)) if part) + self._others
        ending = ""
        # What the first round takes is not known before it has ended.
        if self._time.has_pace:
            fraction = spent_s / max(1e-9, spent_s + left.seconds)
            left_words = f"{about(left.seconds, is_least=left.is_least)} left"
            self._bar.update(self._task, total=1.0, completed=fraction, left=left_words)
            ending = f" · {min(99, round(100 * fraction))} % · {left_words}"
        self._bar.update(self._task, description=where)
        self._bar.refresh()
        if not self._console.is_terminal and (now or spent_s - self._line_s >= LINE_EVERY_S):
            self._print(f"{where}{ending}")

    def _print(self, line: str) -> None:
        """Print a line, above what is drawn."""
        self._line_s = self._bar.tasks[0].elapsed or 0.0
        self._console.print(printable(line), markup=False, soft_wrap=True)


def _what(cell: Cell) -> str:
    return f"{cell.workload} {cell.task}" if says_task([cell]) else cell.workload
