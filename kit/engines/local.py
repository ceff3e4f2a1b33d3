"""The local engine: one fresh worker process per launch, on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import msgspec

from kit.engines.interpreters import interpreter_for
from kit.engines.interrupts import interrupts_held_back
from kit.profile.launch import Failure, Launch, LaunchRequest, PhaseName, StepPlan

# Enough of the worker's standard error to see the framework's own message, not its whole stack.
STDERR_TAIL_LINES = 20
# Import, compilation, scoring and parity take minutes at most; a launch that needs this much beside its steps hangs.
AROUND_THE_STEPS_S = 900.0
# The steps end by their number, which the pace of the warm-up decides: a machine that is slowed down takes longer.
STEPS_SLACK = 3
# Frameworks' start-up chatter would push the message that matters out of the tail.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}
# Read by OpenMP, OpenBLAS and MKL when they are loaded, which is before the worker can tell them.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def launch_timeout_s(plan: StepPlan) -> float:
    """How long a launch may take before it counts as hanging."""
    return AROUND_THE_STEPS_S + STEPS_SLACK * (plan.warmup_s + plan.steady_s)


def run_launch(request: LaunchRequest, timeout_s: float | None = None) -> Launch:
    """Run one worker to its end and give its record; a worker that dies or hangs gives a failed launch.

    What the worker had recorded before it died is kept in the failed launch.
    """
    timeout_s = launch_timeout_s(request.plan) if timeout_s is None else timeout_s
    with tempfile.TemporaryDirectory(prefix="steadykit-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "request.json").write_bytes(msgspec.json.encode(request))
        exit_code = _run_worker(request, folder, timeout_s)
        launch = _read_record(folder) or _nothing_measured(request)
        stderr_tail = _tail(folder / "stderr")
        if exit_code != 0 and launch.failure is None:
            launch.failure = Failure(phase=_last_phase(folder), reason=_how_it_died(exit_code, stderr_tail, timeout_s))
        if launch.failure is not None:
            launch.failure = msgspec.structs.replace(launch.failure, stderr_tail=stderr_tail, exit_code=exit_code)
        return launch


def _run_worker(request: LaunchRequest, folder: Path, timeout_s: float) -> int | None:
    """Exit code, negative for a signal, or None if it had to be ended."""
    command = [interpreter_for(request.cell.backend), "-m", "kit.worker", "--engine", str(os.getpid())]
    for option, file in (("--request", "request.json"), ("--record", "launch.json"), ("--trail", "trail")):
        command += [option, str(folder / file)]
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        worker = None
        try:
            # An interrupt in the middle of this would leave a worker that nobody knows of.
            with interrupts_held_back():
                worker = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    env={**os.environ, **QUIET, **_own(request, folder)},
                    start_new_session=True,
                )
            return worker.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if worker is not None:
                _end_group(worker)


def _own(request: LaunchRequest, folder: Path) -> dict[str, str]:
    """The launch's own environment: what it leaves behind goes with its folder; NumPy counts threads when imported."""
    return {"TMPDIR": str(folder), **dict.fromkeys(THREAD_VARIABLES, str(request.threads))}


def _end_group(worker: subprocess.Popen[bytes]) -> None:
    """End the worker and all that it started: nothing may run on beside the next launch."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


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


def _how_it_died(exit_code: int | None, stderr_tail: str, timeout_s: float) -> str:
    if exit_code is None:
        return f"no end after {timeout_s:.0f} s: ended"
    if exit_code < 0:
        return f"worker ended by {_signal_name(-exit_code)}"
    last_words = (stderr_tail.splitlines() or ["no message"])[-1]
    return f"worker ended with exit code {exit_code}: {last_words}"


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
    except (OSError, msgspec.ValidationError):
        return None


def _tail(path: Path) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-STDERR_TAIL_LINES:])
    except OSError:
        return ""
