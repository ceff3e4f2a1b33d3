"""A member of the round under way, with the records of its cells: what goes wrong with it ends up there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from kit.profile.cell import Cell
from kit.profile.launch import Failure
from kit.profile.reason import reason
from kit.profile.schema import Group
from kit.runner.launchers.protocol import Member, MemberFailedError
from kit.runner.record import LaunchRecord
from kit.suites.plan import Process
from kit.worker.messages import BlockDone, WarmedUp

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

    def prepare(self) -> int | None:
        """Make every program ready and stop; return the resident bytes, None where it fails or they are not known."""
        answer = self._guarded(self.member.prepare)
        if answer is None:
            return None
        for (key, _), record in self.records.items():
            record.prepared(answer, self._place(key))
        return answer.resident_b

    def warm_up(self, key: str, group: str) -> None:
        """Run a cell's warm-up."""
        answer: WarmedUp | None = self._running(self.member.warm_up, self._place(key))
        if answer is not None:
            self.records[key, group].warmed_up(answer)

    def block(self, key: str, seconds: float, *, by_time: bool = False) -> BlockDone | None:
        """Run one block of a cell; None where the member is dead, or dies in it."""
        return self._running(self.member.block, self._place(key), seconds, by_time=by_time)

    def finish(self) -> None:
        """Let the member end, and take what it knows then."""
        if self.dead:
            return
        self.member.resume()
        answer = self._guarded(self.member.finish, pause=False)
        if answer is not None:
            for (key, _), record in self.records.items():
                record.finished(answer, self._place(key))

    def cell(self, key: str) -> Cell:
        """Return the cell of that key."""
        return self.process.cells[self._place(key)]

    def _place(self, key: str) -> int:
        return [cell.key for cell in self.process.cells].index(key)

    def _running(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Let the member go on for one call, and stop it again."""
        if self.dead:
            return None
        self.member.resume()
        return self._guarded(lambda: call(*args, **kwargs))

    def _guarded(self, call: Callable[[], T], *, pause: bool = True) -> T | None:
        try:
            answer = call()
            if pause:
                self.member.pause()
        except MemberFailedError as error:
            self._fail(error)
            return None
        except BaseException:
            self.member.kill()
            raise
        return answer

    def _fail(self, error: MemberFailedError) -> None:
        """Put the failure where it belongs: to the cell it was at. Records that are done keep what they have."""
        self.dead = True
        self.member.kill()
        own = None if error.program is None else self.process.cells[error.program].key
        for (key, _), record in self.records.items():
            if record.done and (error.failure.phase in MEASURING or own not in (None, key)):
                record.launch.marks.append(reason("process_ended_early", cell=own or key))
            elif own is None or key == own:
                record.launch.failure = error.failure
            else:
                why = reason(SHARED_PROCESS_ENDED, cell=own)
                record.launch.failure = Failure(phase=error.failure.phase, reason=why)
