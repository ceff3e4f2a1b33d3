"""A run, from its decisions to its profile: begin or resume, conduct, assemble, write.

begin ─► journal header ─► launches … (each in the journal) ─► profile ─► journal removed
                              │ Ctrl-C, budget, full disk
resume ◄──────────────────────┘   the journal stays; a profile of what had finished is written, too, if it can be
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from kit.clock import now_ns
from kit.engines.assemble import assemble_profile
from kit.engines.conductor import Watcher, conduct
from kit.engines.continuation import Continuation
from kit.engines.interrupts import interrupts_held_back
from kit.engines.local import run_launch
from kit.engines.phase_limits import limit_asked_for
from kit.engines.restore import launches_to_recover, restore_journal
from kit.engines.result_path import result_path
from kit.engines.resumable import check_resumable, without_counters
from kit.errors import KitError
from kit.fingerprint.state import state
from kit.profile.journal import Journal, JournalError, JournalHeader, journal_path
from kit.profile.launch import Launch
from kit.profile.schema import Profile
from kit.profile.store import write_profile
from kit.workloads.data.dataset import ensure


class StoppedError(KitError):
    """The run could not go on; what had finished is in its journal."""


@dataclass(slots=True)
class Run:
    """A run under way, with its journal open."""

    path: Path  # of the profile to be; another one where another run's has come to lie there
    header: JournalHeader
    finished: list[Launch]
    journal: Journal
    damaged: int = 0  # lines of the journal that were lost; their launches are run again
    _continuation: Continuation = field(init=False)

    def __post_init__(self) -> None:
        self._continuation = Continuation(self.header.plan)

    @classmethod
    def begin(cls, path: Path, header: JournalHeader) -> Self:
        """Open a new journal beside `path`; JournalError where an unfinished run is kept."""
        # One that is no number is told before anything is written.
        limit_asked_for()
        return cls(path, header, [], Journal.create(journal_path(path), header))

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Reopen the journal beside `path`, or go on from an interrupted profile whose journal is gone.

        Raises:
            JournalError: there is none, or another run is writing it.
            NotResumableError: it was begun on another machine, software or CPUs.
            DataError: its data is not here: every cell would fail for good.
        """
        restored = restore_journal(path)
        journal, kept = Journal.reopen(journal_path(path))
        try:
            check_resumable(kept.header, usable_cpus())
            ensure(kept.header.plan.data)
        except KitError:
            # One that was written for this resume alone: the profile has all of it.
            (journal.remove if restored else journal.close)()
            raise
        recovered = launches_to_recover(path, kept)
        for launch in recovered:
            journal.add(launch)
        header = msgspec.structs.replace(kept.header, state_before=without_counters(kept.header.state_before))
        return cls(path, header, kept.launches + recovered, journal, max(0, kept.damaged - len(recovered)))

    @property
    def failed(self) -> bool:
        """Whether any launch has failed."""
        return any(launch.failure is not None for launch in self.finished)

    @property
    def expected(self) -> dict[str, int]:
        """Cell key -> about how many launches are still to come."""
        return self._continuation.expected(self.finished)

    @property
    def given_up(self) -> list[str]:
        """Keys of cells that will never be as precise as asked for on this host."""
        return self._continuation.given_up(self.finished)

    def conduct(self, watcher: Watcher, budget_s: float | None) -> Profile:
        """Run what remains and write the profile. Where the budget ends it first, the journal stays for `resume`.

        Raises:
            KeyboardInterrupt: after the profile of the finished launches is written; the journal stays for `resume`.
                Where all has been measured an interrupt ends nothing, within the caller's `interrupts_held_back`.
            KitError: the disk is full, or the folder is gone; the journal stays as it is.
        """
        with interrupts_held_back():
            self._launch_all(watcher, None if budget_s is None else now_ns() + to_ns(budget_s))
            return self._close()

    def _launch_all(self, watcher: Watcher, deadline_ns: int | None) -> None:
        try:
            conduct(
                self._continuation,
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
        except JournalError:
            # A disk that is full for the journal is often full for the profile, too: the journal's error is told.
            with suppress(KitError):
                self._write(interrupted=True)
            raise
        except OSError as error:
            raise StoppedError(
                f"{error.filename or 'the run'}: {error.strerror}; mend that, then go on with "
                f"`kit run --resume --out {self.path}`"
            ) from error

    def _close(self) -> Profile:
        profile = self._write(interrupted=not self._ended())
        if profile.interrupted:
            self.journal.close()
        else:
            self.journal.remove()
        return profile

    def _ended(self) -> bool:
        """Whether all that was asked for has run: a budget may end the search for a precision, and not the launches."""
        if self.header.plan.precision_pct is not None:
            return self._continuation.enough(self.finished)
        return not self._continuation.rest_of_round(self.finished)

    def _write(self, *, interrupted: bool) -> Profile:
        profile = assemble_profile(self.header, self.finished, state(), interrupted=interrupted)
        self.path = result_path(self.path, self.header.id)
        write_profile(self.path, profile)
        return profile


def to_ns(seconds: float) -> int:
    """Nanoseconds; also of numbers so large that their nanoseconds are no float."""
    whole = int(seconds)
    return whole * 1_000_000_000 + round((seconds - whole) * 1e9)


def usable_cpus() -> list[int]:
    """CPUs that this process may run on: what affinity allows."""
    return sorted(os.sched_getaffinity(0))
