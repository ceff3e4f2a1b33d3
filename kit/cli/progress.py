"""Progress of a run, on standard error: a bar with the time left on a terminal, else one line a launch."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kit.profile.launch import Launch, LaunchRequest


class RunProgress:
    """Shows a run's launches, and how long the rest should take.

    Args:
        pending: launches still to run, in order.
        total: how many the whole run has, those included that ended before it was resumed.
    """

    def __init__(self, pending: list[LaunchRequest], total: int) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._pending = [request.cell.key for request in pending]
        self._seen_s: dict[str, list[float]] = {}
        self._total = total
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

    def ended(self, request: LaunchRequest, launch: Launch, duration_s: float) -> None:
        """Count the launch and say, if it failed, why."""
        key = request.cell.key
        self._seen_s.setdefault(key, []).append(duration_s)
        self._pending.remove(key)
        if launch.failure is not None:
            # A failed cell is not launched again.
            self._pending = [pending for pending in self._pending if pending != key]
            self._say(f"failed: {key}: {launch.failure.in_words}")
        left = describe_left(self.left_s())
        self._bar.update(self._task, completed=self._ended, left=left)
        if not self._console.is_terminal:
            self._say(f"[{self._ended}/{self._total}] {key} {duration_s:.1f} s; {left}")

    @property
    def _ended(self) -> int:
        """Launches that need not be waited for: those of a failed cell, too."""
        return self._total - len(self._pending)

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)

    def left_s(self) -> float:
        """Seconds that the pending launches should take: as long as their own cell took, or the mean cell."""
        means_s = {key: sum(seen) / len(seen) for key, seen in self._seen_s.items()}
        overall_s = sum(means_s.values()) / len(means_s)
        return sum(means_s.get(key, overall_s) for key in self._pending)


def describe_left(seconds: float) -> str:
    """ "about 3 min left"; nothing finer than the estimate is worth."""
    if seconds < 1:
        return "done"
    if seconds < 90:  # noqa: PLR2004 - below this, minutes would be too coarse
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left"
