"""Conducts a run: launch after launch, each on disk before the next begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from kit.profile.journal import Journal
from kit.profile.launch import Launch, LaunchRequest

RunLaunch = Callable[[LaunchRequest], Launch]


class Watcher(Protocol):
    """Whoever shows progress."""

    def begins(self, request: LaunchRequest) -> None:
        """A launch is about to run."""

    def ended(self, request: LaunchRequest, launch: Launch, duration_s: float) -> None:
        """A launch has ended and is on disk."""


def remaining(requests: Iterable[LaunchRequest], finished: Iterable[Launch]) -> list[LaunchRequest]:
    """The launches still to run, in order. A cell of which one has failed is not run again."""
    finished = list(finished)
    ended = {(launch.cell_key, launch.round) for launch in finished}
    failed = {launch.cell_key for launch in finished if launch.failure is not None}
    return [r for r in requests if r.cell.key not in failed and (r.cell.key, r.round) not in ended]


def conduct(
    requests: list[LaunchRequest],
    *,
    finished: list[Launch],
    journal: Journal,
    run_launch: RunLaunch,
    watcher: Watcher,
    now_ns: Callable[[], int],
    deadline_ns: int | None = None,
) -> None:
    """Run `requests` one after another, adding each launch to `finished` and to the journal.

    A cell that has failed is not launched again in later rounds: it would fail the same way and cost the others'
    time. Past `deadline_ns` no further round begins; every cell then has the same number of launches.

    Raises:
        KeyboardInterrupt: passed on; `finished` and the journal hold every launch that had ended.
        JournalError: the journal cannot be written (disk full); it holds every launch that had ended.
    """
    failed = {launch.cell_key for launch in finished if launch.failure is not None}
    current_round = requests[0].round if requests else 0
    for request in requests:
        if request.round != current_round and deadline_ns is not None and now_ns() >= deadline_ns:
            return
        current_round = request.round
        if request.cell.key in failed:
            continue
        watcher.begins(request)
        begin_ns = now_ns()
        launch = run_launch(request)
        journal.add(launch)
        finished.append(launch)
        if launch.failure is not None:
            failed.add(request.cell.key)
        watcher.ended(request, launch, (now_ns() - begin_ns) / 1e9)
