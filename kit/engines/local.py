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
from kit.profile.launch import Failure, Launch, LaunchRequest, PhaseName

# Enough of the worker's standard error to see the framework's own message, not its whole stack.
STDERR_TAIL_LINES = 20
# A launch is planned for seconds; one that has not ended after this long hangs.
LAUNCH_TIMEOUT_S = 900.0
# Frameworks' start-up chatter would push the message that matters out of the tail.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}


def run_launch(request: LaunchRequest, timeout_s: float = LAUNCH_TIMEOUT_S) -> Launch:
    """Run one worker to its end and give its record; a worker that dies or hangs gives a failed launch."""
    with tempfile.TemporaryDirectory(prefix="steadykit-") as name:
        folder = Path(name)
        (folder / "request.json").write_bytes(msgspec.json.encode(request))
        exit_code = _run_worker(request.cell.backend, folder, timeout_s)
        launch = _read_record(folder)
        stderr_tail = _tail(folder / "stderr")
        if launch is None:
            return _died(request, folder, exit_code, stderr_tail, timeout_s)
        if launch.failure is not None:
            launch.failure = msgspec.structs.replace(launch.failure, stderr_tail=stderr_tail, exit_code=exit_code)
        return launch


def _run_worker(backend: str, folder: Path, timeout_s: float) -> int | None:
    """Exit code, negative for a signal, or None if it had to be ended."""
    command = [interpreter_for(backend), "-m", "kit.worker"]
    for option, file in (("--request", "request.json"), ("--record", "launch.json"), ("--trail", "trail")):
        command += [option, str(folder / file)]
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        worker = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **QUIET},
            start_new_session=True,
        )
        try:
            return worker.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end_group(worker)


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


def _died(request: LaunchRequest, folder: Path, exit_code: int | None, stderr_tail: str, timeout_s: float) -> Launch:
    if exit_code is None:
        reason = f"no end after {timeout_s:.0f} s: ended"
    elif exit_code < 0:
        reason = f"worker ended by {signal.Signals(-exit_code).name}"
    else:
        last_words = (stderr_tail.splitlines() or ["no message"])[-1]
        reason = f"worker ended with exit code {exit_code}: {last_words}"
    return Launch(
        cell_key=request.cell.key,
        round=request.round,
        started="",
        python="",
        backend_version=None,
        failure=Failure(phase=_last_phase(folder), reason=reason, stderr_tail=stderr_tail, exit_code=exit_code),
    )


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
