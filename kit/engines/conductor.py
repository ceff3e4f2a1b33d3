"""Conducts a run or a self-test: launch after launch, each on disk before the next begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kit.engines.interrupts import heed_interrupts, interrupts_held_back
from kit.profile.journal import Journal
from kit.profile.launch import Launch, LaunchRequest

RunLaunch = Callable[[LaunchRequest], Launch]


class ToDo(Protocol):
    """What is still to do, as a function of what has ended."""

    def rest_of_round(self, ended: Sequence[Launch]) -> list[LaunchRequest]:
        """Launches to make next, in order; none: all is done."""

    def expected(self, ended: Sequence[Launch]) -> Mapping[str, int]:
        """Cell key -> about how many launches are still to come."""


class Watcher(Protocol):
    """Whoever shows progress."""

    def begins(self, request: LaunchRequest) -> None:
        """A launch is about to run."""

    def ended(self, launch: Launch, duration_s: float, expected: Mapping[str, int]) -> None:
        """A launch has ended and is on disk; `expected` says how many of each cell are still to come."""


def conduct(
    to_do: ToDo,
    *,
    finished: list[Launch],
    journal: Journal,
    run_launch: RunLaunch,
    watcher: Watcher,
    now_ns: Callable[[], int],
    deadline_ns: int | None = None,
) -> None:
    """Run what is still to do, adding each launch to `finished` and to the journal.

    Past `deadline_ns` no further round begins; every cell then has the same number of launches. An interrupt is heeded
    while a worker runs, and before the next: both have the launch by then or, where the journal cannot be written, the
    profile at least.

    Raises:
        KeyboardInterrupt: passed on; `finished` and the journal hold every launch that had ended.
        JournalError: the journal cannot be written (disk full); `finished` holds every launch that had ended.
    """
    begun = False
    with interrupts_held_back():
        while requests := to_do.rest_of_round(finished):
            if begun and deadline_ns is not None and now_ns() >= deadline_ns:
                heed_interrupts()
                return
            begun = True
            for request in requests:
                heed_interrupts()
                watcher.begins(request)
                begin_ns = now_ns()
                launch = run_launch(request)
                finished.append(launch)
                journal.add(launch)
                watcher.ended(launch, (now_ns() - begin_ns) / 1e9, to_do.expected(finished))
