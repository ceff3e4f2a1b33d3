"""A run, from its decisions to its profile: begin or resume, conduct, assemble, write.

begin ─► journal header ─► launches … (each in the journal) ─► profile ─► journal removed
                              │ Ctrl-C
resume ◄──────────────────────┘   a profile of what had finished is written then, too
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kit.clock import now_ns
from kit.engines.assemble import assemble_profile
from kit.engines.conductor import Watcher, conduct, remaining
from kit.engines.local import run_launch
from kit.fingerprint.state import state
from kit.profile.journal import Journal, JournalHeader, journal_path
from kit.profile.launch import Launch
from kit.profile.schema import Profile
from kit.profile.store import write_profile


@dataclass(slots=True)
class Run:
    """A run under way, with its journal open."""

    path: Path  # of the profile to be
    header: JournalHeader
    finished: list[Launch]
    journal: Journal

    @classmethod
    def begin(cls, path: Path, header: JournalHeader) -> Self:
        """Open a new journal beside `path`; JournalError where an unfinished run is kept."""
        return cls(path, header, [], Journal.create(journal_path(path), header))

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Reopen the journal beside `path`; JournalError where there is none."""
        journal, header, finished = Journal.reopen(journal_path(path))
        return cls(path, header, finished, journal)

    @property
    def failed(self) -> bool:
        """Whether any launch has failed."""
        return any(launch.failure is not None for launch in self.finished)

    def conduct(self, watcher: Watcher, budget_s: float | None) -> Profile:
        """Run what remains and write the profile.

        Raises:
            KeyboardInterrupt: after the profile of the finished launches is written; the journal stays for `resume`.
        """
        deadline_ns = None if budget_s is None else now_ns() + round(budget_s * 1e9)
        requests = remaining(self.header.requests, self.finished)
        try:
            conduct(
                requests,
                finished=self.finished,
                journal=self.journal,
                run_launch=run_launch,
                watcher=watcher,
                now_ns=now_ns,
                deadline_ns=deadline_ns,
            )
        except KeyboardInterrupt:
            self._write(interrupted=True)
            self.journal.close()
            raise
        profile = self._write(interrupted=False)
        self.journal.remove()
        return profile

    def _write(self, *, interrupted: bool) -> Profile:
        profile = assemble_profile(self.header, self.finished, state())
        profile.interrupted = interrupted
        write_profile(self.path, profile)
        return profile


def usable_cpus() -> list[int]:
    """CPUs that this process may run on: what affinity allows."""
    return sorted(os.sched_getaffinity(0))


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does: worker ended, profile written, journal kept."""

    def interrupt(_signum: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
