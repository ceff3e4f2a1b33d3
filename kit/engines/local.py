"""The local engine: one fresh worker process per launch, on this machine."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from kit.clock import now_ns
from kit.engines.interpreters import interpreter_for
from kit.engines.interrupts import heed_interrupts, interrupts_held_back
from kit.engines.launch_folder import launch_folder, remove_abandoned
from kit.engines.leftovers import LAUNCH_VARIABLE, StuckWorkerError, end_launch
from kit.engines.out_of_memory import memory_kills
from kit.engines.phase_limits import LIMIT_VARIABLE, phase_limits_s
from kit.engines.room import check_room, told_where
from kit.profile.launch import Failure, Launch, LaunchRequest, PhaseName
from kit.worker.parent_death import started_ticks

# Enough of the worker's standard error to see the framework's own message, not its whole stack.
STDERR_TAIL_LINES = 20
# How often the engine looks which phase the worker is in: seldom enough to disturb nothing.
LOOK_EVERY_S = 1.0
# Frameworks' start-up chatter would push the message that matters out of the tail.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}
# Read by OpenMP, OpenBLAS and MKL when they are loaded, which is before the worker can tell them.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

PhaseLimits = Mapping[PhaseName | None, float]


class Ending(NamedTuple):
    """How the worker ended."""

    exit_code: int | None  # negative: a signal; None: it had to be ended
    limit_s: float = 0.0  # that it overran
    memory_kills: int = 0  # by the kernel, while it ran


def run_launch(request: LaunchRequest, limits_s: PhaseLimits | None = None) -> Launch:
    """Run one worker to its end and give its record; a worker that dies or hangs gives a failed launch.

    What the worker had recorded before it died is kept in the failed launch. An interrupt ends a worker that runs; one
    that arrives when it has ended waits for the end of the caller's `interrupts_held_back`, and costs no launch.

    Args:
        request: what to measure.
        limits_s: phase -> seconds after which the launch hangs; those of `phase_limits_s`, if not given.

    Raises:
        KeyboardInterrupt: an interrupt has ended the worker, or the launch failed as one arrived; without a caller
            that holds interrupts back also as it returns.
        PhaseLimitError: see `phase_limits_s`.
        StuckWorkerError: the worker cannot be ended.
        OSError: no room for the launch's files: it failed of that, and not of its cell.
    """
    limits_s = phase_limits_s(request) if limits_s is None else limits_s
    remove_abandoned(Path(tempfile.gettempdir()))
    with interrupts_held_back(), launch_folder() as folder:
        with told_where(folder.parent):
            (folder / "request.json").write_bytes(msgspec.json.encode(request))
        ending = _run_worker(request, folder, limits_s)
        launch = _launch(request, folder, ending)
        if launch.failure is not None:
            # Whoever ends a job signals all of its processes: then this one failed of the interrupt.
            heed_interrupts()
            check_room(folder, launch.failure)
            heed_interrupts()
        return launch


def _launch(request: LaunchRequest, folder: Path, ending: Ending) -> Launch:
    """What the worker left behind, and how it ended."""
    record = _read_record(folder)
    launch = record or _nothing_measured(request)
    stderr_tail = _tail(folder / "stderr")
    if launch.failure is None and (record is None or ending.exit_code != 0):
        launch.failure = Failure(phase=_last_phase(folder), reason=_how_it_died(ending, stderr_tail))
    if launch.failure is not None:
        launch.failure = msgspec.structs.replace(launch.failure, stderr_tail=stderr_tail, exit_code=ending.exit_code)
    return launch


def _run_worker(request: LaunchRequest, folder: Path, limits_s: PhaseLimits) -> Ending:
    command = [interpreter_for(request.cell.backend), "-m", "kit.worker", "--engine", str(os.getpid())]
    if (started := started_ticks(os.getpid())) is not None:
        command += ["--engine-started", str(started)]
    for option, file in (("--request", "request.json"), ("--record", "launch.json"), ("--trail", "trail")):
        command += [option, str(folder / file)]
    kills_before = memory_kills()
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        worker = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **QUIET, **_own(request, folder)},
            start_new_session=True,
        )
        try:
            overrun_s = _overrun_s(worker, folder, limits_s)
        finally:
            ended = end_launch(worker, folder)
    if not ended:
        raise StuckWorkerError(worker.pid)
    if overrun_s is not None:
        return Ending(None, limit_s=overrun_s)
    return Ending(worker.returncode, memory_kills=(memory_kills() or 0) - (kills_before or 0))


def _own(request: LaunchRequest, folder: Path) -> dict[str, str]:
    """The launch's own environment: what it leaves behind goes with its folder; NumPy counts threads when imported."""
    threads = dict.fromkeys(THREAD_VARIABLES, str(request.threads))
    return {"TMPDIR": str(folder), LAUNCH_VARIABLE: str(folder), **threads}


def _overrun_s(worker: subprocess.Popen[bytes], folder: Path, limits_s: PhaseLimits) -> float | None:
    """Wait until the worker has ended (None) or is in one phase for longer than its limit, which is returned."""
    phase, since_ns = None, now_ns()
    with _end_of(worker) as ends_within:
        # An interrupt that arrives when it has ended waits: what it measured is kept.
        while not ends_within(LOOK_EVERY_S):
            heed_interrupts()
            now_in = _last_phase(folder)
            if now_in != phase:
                phase, since_ns = now_in, now_ns()
            elif now_ns() - since_ns > limits_s[phase] * 1e9:
                return limits_s[phase]
    return None


@contextlib.contextmanager
def _end_of(worker: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """A function that sleeps until the worker ends, for so many seconds at most, and says whether it has ended.

    Where the kernel tells: `Popen.wait` with a timeout wakes up 20 times a second, beside the measured steps.
    """
    try:
        descriptor = os.pidfd_open(worker.pid)
    except (AttributeError, OSError):
        # Before Linux 5.3.
        yield lambda seconds: _waited(worker, seconds)
        return
    try:
        yield lambda seconds: bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def _waited(worker: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        worker.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _read_record(folder: Path) -> Launch | None:
    try:
        return msgspec.json.decode((folder / "launch.json").read_bytes(), type=Launch)
    except (OSError, msgspec.DecodeError):
        return None


def _nothing_measured(request: LaunchRequest) -> Launch:
    return Launch(
        cell_key=request.cell.key,
        round=request.round,
        started="",
        python="",
        backend_version=None,
        failure=None,
    )


def _how_it_died(ending: Ending, stderr_tail: str) -> str:
    if ending.exit_code is None:
        return f"no end within {ending.limit_s:g} s: ended; {LIMIT_VARIABLE} gives a phase more seconds"
    if ending.exit_code < 0:
        words = f"worker ended by {_signal_name(-ending.exit_code)}"
        killed_for_memory = ending.exit_code == -signal.SIGKILL and ending.memory_kills > 0
        return f"{words}: out of memory (meanwhile the kernel killed for want of it)" if killed_for_memory else words
    if ending.exit_code == 0:
        return "worker ended without a whole record"
    last_words = (stderr_tail.splitlines() or ["no message"])[-1]
    return f"worker ended with exit code {ending.exit_code}: {last_words}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        # Most real-time signals have no name.
        return f"signal {number}"


def _last_phase(folder: Path) -> PhaseName | None:
    try:
        last = (folder / "trail").read_text("ascii").split()[-1:]
        return msgspec.convert(last[0], PhaseName) if last else None
    except (OSError, UnicodeDecodeError, msgspec.ValidationError):
        return None


def _tail(path: Path) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-STDERR_TAIL_LINES:])
    except OSError:
        return ""
