"""A member of the round under way, with the records of its cells: what goes wrong with it ends up there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Concatenate, ParamSpec, TypeVar

from kit.profile.cell import Cell
from kit.profile.launch import Failure
from kit.profile.reason import reason
from kit.profile.schema import Group
from kit.runner.launchers.protocol import Member, MemberFailedError, ProgramFailedError
from kit.runner.record import LaunchRecord
from kit.suites.plan import Process
from kit.worker.messages import BlockDone, Built

# A cell whose process ended in another cell's blocks has not failed itself: the next round gives it a process.
SHARED_PROCESS_ENDED = "shared_process_ended"

# A cell that dies in these has finished what it measured before them; one that dies later computes nonsense.
MEASURING = ("warmup", "steady", "energy")

P = ParamSpec("P")
T = TypeVar("T")


class LiveMember:
    """One process of the round.

    Args:
        process: which cells it holds.
        member: as the launcher started it.
        groups: that are measured in this round.
        number: of the round.

    Attributes:
        records: (cell key, group key) -> record; a cell may be in two groups.
        dead: it has ended before it was told to.
    """

    def __init__(self, process: Process, member: Member, groups: Iterable[Group], number: int) -> None:
        self.process = process
        self.member = member
        self.dead = False
        self.records = {
            (cell.key, group.key): LaunchRecord(cell, group.key, number, process.name)
            for group in groups
            for cell in process.cells
            if cell.key in group.cells
        }
        self._built: dict[str, Built] = {}
        self._failed: dict[str, Failure] = {}

    def prepare(self) -> None:
        """Import the framework, and stop."""
        answer = self._guarded(self.member.prepare)
        if answer is not None:
            for record in self.records.values():
                record.prepared(answer)

    def build(self, key: str, group: str) -> int | None:
        """Make a cell ready unless it is; return the process' resident bytes, None where it fails or is not known."""
        if key not in self._built:
            answer = self._running(key, self.member.build)
            if answer is None:
                return None
            self._built[key] = answer
        self.records[key, group].built(self._built[key])
        return self._built[key].resident_b

    def warm_up(self, key: str, group: str) -> None:
        """Run a cell's warm-up."""
        answer = self._running(key, self.member.warm_up)
        if answer is not None:
            self.records[key, group].warmed_up(answer)

    def block(self, key: str, seconds: float, *, by_time: bool = False) -> BlockDone | None:
        """Run one block of a cell; None where it has failed, or does in it."""
        return self._running(key, self.member.block, seconds, by_time=by_time)

    def conclude(self, key: str) -> None:
        """Let a cell that no later group wants prove itself and go, and take what it knows then."""
        answer = self._running(key, self.member.conclude)
        if answer is not None:
            for record in self._records_of(key):
                record.concluded(answer)

    def finish(self) -> None:
        """Let the member end, and take what it knows then."""
        if self.dead:
            return
        self.member.resume()
        answer = self._guarded(self.member.finish, pause=False)
        if answer is not None:
            for record in self.records.values():
                record.finished(answer)

    def is_gone(self, key: str) -> bool:
        """Return whether a cell measures no more: it has failed, or its process has ended."""
        return self.dead or key in self._failed

    def cell(self, key: str) -> Cell:
        """Return the cell of that key."""
        return self.process.cells[self._place(key)]

    def _place(self, key: str) -> int:
        return [cell.key for cell in self.process.cells].index(key)

    def _records_of(self, key: str) -> list[LaunchRecord]:
        return [record for (own, _), record in self.records.items() if own == key]

    def _running(self, key: str, call: Callable[Concatenate[int, P], T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Let the member go on for one call of a program, and stop it again."""
        if self.is_gone(key):
            return None
        self.member.resume()
        return self._guarded(lambda: call(self._place(key), *args, **kwargs))

    def _guarded(self, call: Callable[[], T], *, pause: bool = True) -> T | None:
        answer = None
        try:
            try:
                answer = call()
            except ProgramFailedError as error:
                self._fail_program(self.process.cells[error.program].key, error.failure)
            if pause:
                self.member.pause()
        except MemberFailedError as error:
            self._fail(error)
            return None
        except BaseException:
            self.member.kill()
            raise
        return answer

    def _fail_program(self, key: str, failure: Failure) -> None:
        """Let the other cells of the process go on."""
        self._failed[key] = failure
        for record in self._records_of(key):
            if record.done and failure.phase in MEASURING:
                record.launch.marks.append(reason("process_ended_early", cell=key))
            elif record.launch.failure is None:
                record.launch.failure = failure

    def _fail(self, error: MemberFailedError) -> None:
        """Put the failure where it belongs: to the cell it was at. Records that are done keep what they have."""
        self.dead = True
        self.member.kill()
        own = None if error.program is None else self.process.cells[error.program].key
        for (key, _), record in self.records.items():
            if key in self._failed:
                continue
            if record.done and (error.failure.phase in MEASURING or own not in (None, key)):
                record.launch.marks.append(reason("process_ended_early", cell=own or key))
            elif own is None or key == own:
                record.launch.failure = error.failure
            else:
                why = reason(SHARED_PROCESS_ENDED, cell=own)
                record.launch.failure = Failure(phase=error.failure.phase, reason=why)
