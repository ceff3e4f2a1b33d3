"""The conversation with a member: a command out, answers back, each phase with a deadline. Whatever carries its lines.

LocalLauncher ─► a process on this machine ─┐
                                            ├─► Channel ─► Conversation, a Member
ImageLauncher ─► a container of an image ───┘
"""

from __future__ import annotations

import contextlib
import os
from typing import Protocol, TypeVar

import msgspec

from kit.clock import now_ns
from kit.errors import KitError
from kit.profile.launch import Failure, PhaseName
from kit.profile.reason import Reason, reason
from kit.runner.launchers.protocol import MemberFailedError, MemberRequest, ProgramFailedError
from kit.runner.stop import StopFlag
from kit.worker.messages import (
    Answer,
    BlockDone,
    Build,
    Built,
    Command,
    Conclude,
    Concluded,
    Entered,
    Failed,
    Finish,
    Finished,
    Prepared,
    RunBlock,
    WarmedUp,
    WarmUp,
)

# Seconds that one phase may take before the launch counts as hanging: for a network whose compilation takes longer.
LIMIT_VARIABLE = "KIT_PHASE_LIMIT_S"
# An import from a cold network disk, XLA's autotuning and torch.compile take minutes where they work at all.
LIMIT_S = 900.0
# A signal acts in microseconds; a process that takes longer is stuck in a driver or a disk.
SIGNAL_LIMIT_S = 10.0
# How soon an interrupt is heeded while a member works.
LOOK_EVERY_S = 0.5

Wanted = TypeVar("Wanted", bound=Answer)


class PhaseLimitError(KitError):
    """The limit that was asked for is no number of seconds."""


def phase_limit_s() -> float:
    """Return the seconds from KIT_PHASE_LIMIT_S, or the default.

    Raises:
        PhaseLimitError: it is not a number of seconds above 0.
    """
    text = os.environ.get(LIMIT_VARIABLE)
    if not text:
        return LIMIT_S
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) < float("inf"):
            return seconds
    raise PhaseLimitError(f"{LIMIT_VARIABLE} is {text!r}; give a number of seconds above 0, or unset it")


class Channel(Protocol):
    """A process at the far end of two pipes."""

    def send(self, line: bytes) -> None:
        """Write a line to it. OSError where it has gone."""

    def receive(self, wait_s: float) -> bytes | None:
        """Return what it has written within `wait_s`; b"" at its end, None where nothing came."""

    def pause(self) -> bool:
        """Stop all its threads; False where it has ended. TimeoutError where it does neither within SIGNAL_LIMIT_S."""

    def resume(self) -> None:
        """Let it go on."""

    def wait(self, limit_s: float) -> None:
        """Wait for its end, or until `limit_s` are over."""

    def how_it_ended(self) -> Reason:
        """Return why, as far as it is known."""

    def stderr_tail(self) -> str:
        """Return the last lines that it wrote to standard error."""

    def kill(self) -> None:
        """End it with all that it has started, and remove what is left of it."""


class Conversation:
    """A member; `kit.runner.launchers.protocol.Member` says what each call does."""

    def __init__(self, request: MemberRequest, channel: Channel, stop: StopFlag, limit_s: float) -> None:
        self._request = request
        self._channel = channel
        self._stop = stop
        self._limit_s = limit_s
        self._phase: PhaseName = "start"
        self._program: int | None = None
        self._unread = b""
        self._decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)

    def prepare(self) -> Prepared:
        """Import the framework."""
        return self._ask(self._request.prepare, Prepared)

    def build(self, program: int) -> Built:
        """Load a program's data, build and compile it, and make its first step."""
        return self._ask(Build(program=program), Built)

    def warm_up(self, program: int) -> WarmedUp:
        """Run a program's warm-up."""
        return self._ask(WarmUp(program=program), WarmedUp)

    def block(self, program: int, seconds: float, *, by_time: bool = False) -> BlockDone:
        """Run one block of a program, of about `seconds`; `by_time`: of no less."""
        self._phase, self._program = "energy" if by_time else "steady", program
        return self._ask(RunBlock(program=program, seconds=seconds, by_time=by_time), BlockDone, more_s=3 * seconds)

    def conclude(self, program: int) -> Concluded:
        """Prove a program, and give its memory back."""
        return self._ask(Conclude(program=program), Concluded)

    def finish(self) -> Finished:
        """Certify and end; what it has started ends with it."""
        finished = self._ask(Finish(), Finished)
        self._channel.wait(SIGNAL_LIMIT_S)
        self.kill()
        return finished

    def pause(self) -> None:
        """Stop every thread, and wait until all have stopped."""
        try:
            stopped = self._channel.pause()
        except TimeoutError:
            raise self._died(reason("does_not_stop", limit_s=SIGNAL_LIMIT_S)) from None
        if not stopped:
            raise self._died(self._channel.how_it_ended())

    def resume(self) -> None:
        """Let it go on."""
        self._channel.resume()

    def kill(self) -> None:
        """End it at once."""
        self._channel.kill()

    def _ask(self, command: Command, wanted: type[Wanted], more_s: float = 0.0) -> Wanted:
        """Send a command and wait for its answer; each phase on the way has its own deadline."""
        try:
            self._channel.send(msgspec.json.encode(command) + b"\n")
        except OSError:
            raise self._died(self._channel.how_it_ended()) from None
        limit_s = self._limit_s + more_s
        deadline_ns = now_ns() + int(limit_s * 1e9)
        while True:
            answer = self._next_answer(deadline_ns, limit_s)
            if isinstance(answer, Entered):
                self._phase, self._program = answer.phase, answer.program
                deadline_ns = now_ns() + int(limit_s * 1e9)
            elif isinstance(answer, Failed) and answer.program is not None:
                tail = self._channel.stderr_tail()
                raise ProgramFailedError(answer.program, msgspec.structs.replace(answer.failure, stderr_tail=tail))
            elif isinstance(answer, Failed):
                self._channel.wait(SIGNAL_LIMIT_S)  # for its last words
                self._phase, self._program = answer.failure.phase, answer.program
                raise self._died(answer.failure.reason)
            elif isinstance(answer, wanted):
                return answer
            else:
                raise self._died(reason("protocol", message=type(answer).__name__))

    def _next_answer(self, deadline_ns: int, limit_s: float) -> Answer:
        while b"\n" not in self._unread:
            self._stop.check()
            data = self._channel.receive(LOOK_EVERY_S)
            if data is None:
                if now_ns() > deadline_ns:
                    raise self._died(reason("phase_timeout", limit_s=limit_s))
            elif not data:
                self._channel.wait(SIGNAL_LIMIT_S)
                self._stop.check()
                raise self._died(self._channel.how_it_ended())
            else:
                self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            return self._decoder.decode(line)
        except msgspec.DecodeError as error:
            raise self._died(reason("protocol", message=str(error))) from None

    def _died(self, why: Reason) -> MemberFailedError:
        failure = Failure(phase=self._phase, reason=why, stderr_tail=self._channel.stderr_tail())
        return MemberFailedError(self._program, failure)
