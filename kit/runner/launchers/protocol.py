"""The contract of a launcher: it starts members, and a member does one thing at a time.

launcher.start(request) ─► member.prepare ─► pause │ resume ─► build ─► pause │ resume ─► warm_up ─► pause
                        │ resume ─► block ─► pause … │ resume ─► conclude ─► pause │ resume ─► finish
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kit.profile.cell import Variant
from kit.profile.launch import Failure
from kit.worker.messages import BlockDone, Built, Concluded, Finished, Prepare, Prepared, WarmedUp


class MemberRequest(NamedTuple):
    """What a member is started with."""

    backend: str
    variant: Variant
    prepare: Prepare


class MemberFailedError(Exception):
    """The member has ended before it was told to.

    Attributes:
        program: index of the program that it was at; null: none of them, or all.
        failure: in which phase, and why.
    """

    def __init__(self, program: int | None, failure: Failure) -> None:
        super().__init__(failure.reason.code)
        self.program = program
        self.failure = failure


class ProgramFailedError(Exception):
    """A program of the member has failed and is gone; the member can go on with its others.

    Attributes:
        program: index of the program.
        failure: in which phase, and why.
    """

    def __init__(self, program: int, failure: Failure) -> None:
        super().__init__(failure.reason.code)
        self.program = program
        self.failure = failure


class Member(Protocol):
    """A process that holds programs.

    Every call raises MemberFailedError where the process ends, and KeyboardInterrupt; those of a program
    ProgramFailedError.
    """

    def prepare(self) -> Prepared:
        """Import the framework."""

    def build(self, program: int) -> Built:
        """Load a program's data, build and compile it, and make its first step."""

    def warm_up(self, program: int) -> WarmedUp:
        """Run a program's warm-up."""

    def block(self, program: int, seconds: float, *, by_time: bool = False) -> BlockDone:
        """Run one block of a program, of about `seconds`; `by_time`: of no less."""

    def conclude(self, program: int) -> Concluded:
        """Prove a program, and give its memory back."""

    def pause(self) -> None:
        """Stop every thread of the member, and wait until all have stopped."""

    def resume(self) -> None:
        """Let it go on."""

    def finish(self) -> Finished:
        """Certify and end."""

    def kill(self) -> None:
        """End it at once, with all that it has started; nothing where it has ended."""


class Launcher(Protocol):
    """Starts members on this machine, or in a container."""

    def start(self, request: MemberRequest) -> Member:
        """Start a process. OSError where there is no room for it."""
