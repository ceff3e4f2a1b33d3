"""Progress of a run, on standard error: one line a launch, and on a terminal a bar with the time left."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kit.profile.launch import Launch, LaunchRequest
from kit.report.plain import one_line
from kit.report.quantity import duration
from kit.stats.launch_summary import summary_of


class RunProgress:
    """Shows a run's launches, what each gave, and how long the rest should take.

    Args:
        expected: cell key -> launches still to come.
        ended: how many had ended before the run was resumed.
        budget_s: after which no further round begins; None: there is none.
    """

    def __init__(self, expected: Mapping[str, int], ended: int = 0, budget_s: float | None = None) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._expected = expected
        self._ended = ended
        self._budget_s = budget_s
        self._begin_s = monotonic()
        self._seen_s: dict[str, list[float]] = {}
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("launches", total=self._total, completed=self._ended, left="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begins(self, request: LaunchRequest) -> None:
        """Name the launch that is about to run."""
        cell = request.cell
        self._bar.update(self._task, description=f"{cell.workload} {cell.backend} {cell.task}")

    def ended(self, launch: Launch, duration_s: float, expected: Mapping[str, int]) -> None:
        """Count the launch and say what it gave."""
        self._seen_s.setdefault(launch.cell_key, []).append(duration_s)
        self._expected = expected
        self._ended += 1
        left = describe_left(self.left_s())
        self._bar.update(self._task, completed=self._ended, total=self._total, left=left)
        rest = "" if self._console.is_terminal else f"; took {duration_s:.1f} s; {left}"
        self._say(f"[{self._ended}/{self._total}] {launch.cell_key}: {describe_result(launch)}{rest}")

    @property
    def _total(self) -> int:
        return self._ended + sum(self._expected.values())

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)

    def left_s(self) -> float:
        """Seconds that the rest should take: each launch as long as its own cell's took, or as the mean cell's.

        The first launch of a cell also scores and proves parity: once there are others, it is left out. The budget, and
        the round under way when it ends, are the most.
        """
        means_s = {key: fmean(seen[1:] or seen) for key, seen in self._seen_s.items()}
        overall_s = fmean(means_s.values())
        launches_s = sum(count * means_s.get(key, overall_s) for key, count in self._expected.items())
        if self._budget_s is None:
            return launches_s
        round_s = sum(means_s.get(key, overall_s) for key, count in self._expected.items() if count)
        return min(launches_s, max(0.0, self._budget_s - (monotonic() - self._begin_s)) + round_s)


def describe_result(launch: Launch) -> str:
    """The step time that a launch gave, or why it gave none."""
    if launch.failure is not None:
        return f"failed: {one_line(launch.failure.in_words)}"
    summary = summary_of(launch)
    if summary is None:
        return "no steps"
    if summary.median_ns is None:
        return f"no number: {summary.reason}"
    slowed = f", slowed by {launch.planted_slowdown_pct:g} %" if launch.planted_slowdown_pct else ""
    return f"{duration(summary.median_ns, 4)} a step{slowed}"


def describe_left(seconds: float) -> str:
    """ "about 3 min left"; nothing finer than the estimate is worth."""
    if seconds < 1:
        return "done"
    if seconds < 90:  # noqa: PLR2004 - below this, minutes would be too coarse
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left"
