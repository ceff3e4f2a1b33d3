"""A self-test: launches of one cell, some slowed on purpose, each on disk before the next begins; then the answer.

begin ─► header ─► launches … (each in the file) ─► answer ─► host's band
                        │ Ctrl-C                       ▲
resume ◄────────────────┴──────── --from ──────────────┘   the file stays: it can be judged again
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kit.clock import now_ns
from kit.engines.conductor import RunLaunch, Watcher, conduct
from kit.engines.local import run_launch
from kit.engines.resumable import check_resumable
from kit.engines.run import usable_cpus
from kit.engines.selftest_plan import SelfTestPlan
from kit.errors import KitError
from kit.profile.journal import SUFFIX as RUN_SUFFIX
from kit.profile.journal import Journal, JournalError, JournalHeader, read_journal
from kit.profile.launch import Launch
from kit.profile.regular_file import open_regular
from kit.profile.self_test import SelfTestAnswer
from kit.stats.self_test import judge_self_test

# In the header, in place of a suite's: `kit run --resume` must not take the slowed launches for a run's.
SUITE_NAME = "selftest"


class SelfTestError(KitError):
    """The self-test cannot begin, go on or be judged; one line."""


@dataclass(slots=True)
class SelfTest:
    """A self-test under way, with its file open."""

    path: Path
    header: JournalHeader
    finished: list[Launch]
    file: Journal
    damaged: int = 0  # lines that could not be read back; their launches are run again
    _plan: SelfTestPlan = field(init=False)

    def __post_init__(self) -> None:
        self._plan = SelfTestPlan(self.header.plan)

    @classmethod
    def begin(cls, path: Path, header: JournalHeader) -> Self:
        """Open a new file.

        Raises:
            SelfTestError: there is something at `path`, or its name is that of a run's journal.
            JournalError: it cannot be written.
        """
        if path.name.endswith(RUN_SUFFIX):
            raise SelfTestError(
                f"{path}: names that end in {RUN_SUFFIX} are those of unfinished runs; choose another --out"
            )
        if path.exists():
            raise SelfTestError(
                f"{path}: is there already; go on with --resume, judge it with --from, or choose another --out"
            )
        return cls(path, header, [], Journal.create(path, header))

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Go on where a self-test was interrupted.

        Raises:
            SelfTestError: there is none at `path`.
            JournalError: it is being written, or cannot be read.
            NotResumableError: it was begun on another machine, software or CPUs.
        """
        _check_kept(path)
        file, kept = Journal.reopen(path)
        try:
            _check_is_ours(path, kept.header)
            check_resumable(kept.header, usable_cpus())
        except KitError:
            file.close()
            raise
        return cls(path, kept.header, kept.launches, file, kept.damaged)

    @property
    def failed(self) -> bool:
        """Whether any launch has failed."""
        return any(launch.failure is not None for launch in self.finished)

    @property
    def expected(self) -> dict[str, int]:
        """Cell key -> launches still to come."""
        return self._plan.expected(self.finished)

    def conduct(self, watcher: Watcher, run: RunLaunch = run_launch) -> None:
        """Run what remains.

        Raises:
            KeyboardInterrupt: passed on; the file holds every launch that had ended.
            SelfTestError: the file cannot be written; it holds every launch that had ended.
        """
        try:
            conduct(
                self._plan, finished=self.finished, journal=self.file, run_launch=run, watcher=watcher, now_ns=now_ns
            )
        except (JournalError, OSError) as error:
            raise SelfTestError(self._how_to_go_on(error)) from error
        finally:
            self.file.close()

    def _how_to_go_on(self, error: JournalError | OSError) -> str:
        if not self.path.exists():
            return f"{self.path}: has been removed while the self-test wrote it; begin anew"
        # What the journal adds after its reason is how a run goes on.
        if isinstance(error, OSError):
            why = f"{error.filename or self.path}: {error.strerror}"
        else:
            why = str(error).split(";", maxsplit=1)[0]
        return f"{why}; mend that, then go on with `kit selftest --resume --out {self.path}`"

    def answer(self) -> SelfTestAnswer:
        """What the launches say."""
        return _judge(self.path, self.header, self.finished)


def judge_kept(path: Path) -> tuple[SelfTestAnswer, int]:
    """Judge the launches of a self-test again, whole or interrupted; and how many of its lines were damaged.

    Raises:
        SelfTestError: there is none at `path`, or none of its launches had ended.
        JournalError: it cannot be read.
    """
    _check_kept(path)
    kept = read_journal(path)
    _check_is_ours(path, kept.header)
    return _judge(path, kept.header, kept.launches), kept.damaged


def _judge(path: Path, header: JournalHeader, launches: list[Launch]) -> SelfTestAnswer:
    if not launches:
        raise SelfTestError(f"{path}: none of its launches had ended; go on with `kit selftest --resume --out {path}`")
    return judge_self_test(
        launches,
        cpu=header.identity.cpu.model,
        hardware_sha256=header.identity.hardware_sha256,
        seed=header.plan.seed,
    )


def _check_kept(path: Path) -> None:
    with contextlib.suppress(OSError), os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        if file.read(1) == b"{":
            raise SelfTestError(f"{path}: is JSON, a profile perhaps, not the file of a self-test; give that")
    if not path.exists():
        raise SelfTestError(f"{path}: no self-test is kept there; leave out --resume and --from to begin one")


def _check_is_ours(path: Path, header: JournalHeader) -> None:
    if header.suite.name != SUITE_NAME:
        raise SelfTestError(
            f"{path}: holds the unfinished run of a suite, not a self-test; `kit run --resume` goes on with it"
        )
