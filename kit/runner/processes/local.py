"""A member as a fresh process on this machine, in a session of its own.

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

from kit.clock import now_ns
from kit.profile.reason import Reason, reason
from kit.runner.interpreters import interpreter_for
from kit.runner.processes.process import (
    MEMBER_ENVIRONMENT,
    SIGNAL_LIMIT_S,
    STDERR_TAIL_LINES,
    MemberRequest,
    devices_shown,
    exited_with,
    killed_by,
    thread_variables,
)

POLL_S = 0.0002
READ_B = 1 << 20


class LocalProcess:
    """See `kit.runner.processes.process.Process`."""

    def __init__(self, request: MemberRequest) -> None:
        self._kills_before = _memory_kills()
        self._folder = tempfile.TemporaryDirectory(prefix="steadykit-", ignore_cleanup_errors=True)
        self._stderr = Path(self._folder.name) / "stderr"
        prepare = request.prepare
        python = interpreter_for(request.backend, request.variant)
        cpus = ",".join(map(str, prepare.cpus))
        with self._stderr.open("wb") as stderr:
            self._process = subprocess.Popen(
                [python, "-m", "kit.worker", "--runner", str(os.getpid()), "--cpus", cpus],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={
                    **MEMBER_ENVIRONMENT,
                    **os.environ,
                    **thread_variables(prepare),
                    **devices_shown(prepare, os.environ | request.variant.env),
                    "TMPDIR": self._folder.name,
                    **request.variant.env,
                },
                start_new_session=True,
            )

    def send(self, line: bytes) -> None:
        """Write a line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def receive(self, wait_s: float) -> bytes | None:
        """Return what it has written."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        return os.read(descriptor, READ_B) if select.select([descriptor], [], [], wait_s)[0] else None

    def pause(self) -> bool:
        """Stop the process group."""
        self._signal(signal.SIGSTOP)
        deadline_ns = now_ns() + int(SIGNAL_LIMIT_S * 1e9)
        with contextlib.suppress(ChildProcessError):  # it has ended: a zombie is no child that could stop
            while os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG) is None:
                if self._process.poll() is not None:
                    return False
                if now_ns() > deadline_ns:
                    raise TimeoutError
                time.sleep(POLL_S)
            return True
        return False

    def resume(self) -> None:
        """Continue the process group."""
        self._signal(signal.SIGCONT)

    def wait(self, limit_s: float) -> None:
        """Wait for its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_s)

    def kill(self) -> None:
        """End the process group and remove its files."""
        self._signal(signal.SIGKILL)
        self.wait(SIGNAL_LIMIT_S)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._folder.cleanup()

    def how_it_ended(self) -> Reason:
        """Return its signal or exit code, or that the kernel killed it for lack of memory."""
        code = self._process.poll()
        if code is None:
            return reason("closed_its_pipes")
        if code == -signal.SIGKILL and (_memory_kills() or 0) > (self._kills_before or 0):
            return reason("out_of_memory", signal="SIGKILL")
        return killed_by(-code) if code < 0 else exited_with(code, self.stderr_tail())

    def stderr_tail(self) -> str:
        """Return the last lines of the file that its standard error goes to."""
        try:
            return "\n".join(self._stderr.read_text(errors="replace").splitlines()[-STDERR_TAIL_LINES:])
        except OSError:
            return ""

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _memory_kills() -> int | None:
    """Return how many processes the kernel has killed for lack of memory; None where it does not count them."""
    try:
        lines = Path("/proc/vmstat").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
