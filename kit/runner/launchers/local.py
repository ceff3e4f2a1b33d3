"""The local launcher: a member is a fresh process on this machine, in a session of its own.

One signal reaches it and what it has started: SIGSTOP between its blocks, SIGKILL at its end. Its temporary files go
into a folder that goes with it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from kit.clock import now_ns
from kit.errors import KitError
from kit.profile.launch import Failure, PhaseName
from kit.profile.reason import Reason, reason
from kit.runner.interpreters import member_command
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
POLL_S = 0.0002
# How soon an interrupt is heeded while a member works.
LOOK_EVERY_S = 0.5
READ_B = 1 << 20
# Enough of standard error to see the framework's own message, not its whole stack.
STDERR_TAIL_LINES = 20
# Read by libraries when they are loaded, which is before the worker can tell them.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC",
    "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
)  # fmt: skip

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


class LocalLauncher:
    """Starts members of one run.

    Args:
        stop: looked at while a member works.
    """

    def __init__(self, stop: StopFlag) -> None:
        self._stop = stop
        self._limit_s = phase_limit_s()

    def start(self, request: MemberRequest) -> LocalMember:
        """Start a member's process; from the main thread, as its parent-death signal follows the thread that forks."""
        return LocalMember(request, self._stop, self._limit_s)


class LocalMember:
    """One process; `kit.runner.launchers.protocol.Member` says what each call does."""

    def __init__(self, request: MemberRequest, stop: StopFlag, limit_s: float) -> None:
        self._request = request
        self._stop = stop
        self._limit_s = limit_s
        self._phase: PhaseName = "start"
        self._program: int | None = None
        self._unread = b""
        self._decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)
        self._kills_before = _memory_kills()
        self._folder = tempfile.TemporaryDirectory(prefix="steadykit-", ignore_cleanup_errors=True)
        self._stderr = Path(self._folder.name) / "stderr"
        prepare = request.prepare
        with self._stderr.open("wb") as stderr:
            self._process = subprocess.Popen(
                [*member_command(request.backend, request.variant), "--cpus", ",".join(map(str, prepare.cpus))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={
                    **os.environ,
                    **dict.fromkeys(THREAD_VARIABLES, str(prepare.threads)),
                    "TMPDIR": self._folder.name,
                    **request.variant.env,
                },
                start_new_session=True,
            )

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
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SIGNAL_LIMIT_S)
        self.kill()
        return finished

    def pause(self) -> None:
        """Stop the process group and wait until it has stopped."""
        self._signal(signal.SIGSTOP)
        deadline_ns = now_ns() + int(SIGNAL_LIMIT_S * 1e9)
        while os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG) is None:
            if self._process.poll() is not None:
                raise self._died(self._how_it_died())
            if now_ns() > deadline_ns:
                raise self._died(reason("does_not_stop", limit_s=SIGNAL_LIMIT_S))
            time.sleep(POLL_S)

    def resume(self) -> None:
        """Continue the process group."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process group and remove its files."""
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SIGNAL_LIMIT_S)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._folder.cleanup()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _ask(self, command: Command, wanted: type[Wanted], more_s: float = 0.0) -> Wanted:
        """Send a command and wait for its answer; each phase on the way has its own deadline."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(command) + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._died(self._how_it_died()) from None
        limit_s = self._limit_s + more_s
        deadline_ns = now_ns() + int(limit_s * 1e9)
        while True:
            answer = self._next_answer(deadline_ns, limit_s)
            if isinstance(answer, Entered):
                self._phase, self._program = answer.phase, answer.program
                deadline_ns = now_ns() + int(limit_s * 1e9)
            elif isinstance(answer, Failed) and answer.program is not None:
                tail = self._stderr_tail()
                raise ProgramFailedError(answer.program, msgspec.structs.replace(answer.failure, stderr_tail=tail))
            elif isinstance(answer, Failed):
                # Its last answer: wait for its last words.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(SIGNAL_LIMIT_S)
                self._phase, self._program = answer.failure.phase, answer.program
                raise self._died(answer.failure.reason)
            elif isinstance(answer, wanted):
                return answer
            else:
                raise self._died(reason("protocol", message=type(answer).__name__))

    def _next_answer(self, deadline_ns: int, limit_s: float) -> Answer:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            self._stop.check()
            if not select.select([descriptor], [], [], LOOK_EVERY_S)[0]:
                if now_ns() > deadline_ns:
                    raise self._died(reason("phase_timeout", limit_s=limit_s))
                continue
            data = os.read(descriptor, READ_B)
            if not data:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(SIGNAL_LIMIT_S)
                self._stop.check()
                raise self._died(self._how_it_died())
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            return self._decoder.decode(line)
        except msgspec.DecodeError as error:
            raise self._died(reason("protocol", message=str(error))) from None

    def _how_it_died(self) -> Reason:
        code = self._process.poll()
        if code is None:
            return reason("closed_its_pipes")
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            if code == -signal.SIGKILL and (_memory_kills() or 0) > (self._kills_before or 0):
                return reason("out_of_memory", signal=name)
            return reason("signal", signal=name)
        last_words = (self._stderr_tail().splitlines() or [""])[-1]
        return reason("exit_code", exit_code=code, message=last_words)

    def _died(self, why: Reason) -> MemberFailedError:
        failure = Failure(phase=self._phase, reason=why, stderr_tail=self._stderr_tail())
        return MemberFailedError(self._program, failure)

    def _stderr_tail(self) -> str:
        try:
            return "\n".join(self._stderr.read_text(errors="replace").splitlines()[-STDERR_TAIL_LINES:])
        except OSError:
            return ""


def _memory_kills() -> int | None:
    """Return how many processes the kernel has killed for want of memory; None where it does not count them."""
    try:
        lines = Path("/proc/vmstat").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
