"""The worker's handle on its sampler: start, stop, and what it saw of the steady phase.

A sampler that does not start or that dies costs the launch its utilization and energy, with the reason, and no more.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from kit.profile.launch import Energy, Utilization
from kit.profile.sensor import SensorReport
from kit.sensors.stamp import now_ns
from kit.worker.sampler import DEFAULT_PERIOD_S
from kit.worker.samples import Samples, read_samples
from kit.worker.steady_energy import energies
from kit.worker.steady_utilization import utilization

# Interpreter, psutil and NVML start within a second, a cold disk and a slow driver within a few.
READY_TIMEOUT_S = 15.0
# It ends within one tick; what takes longer hangs in a driver.
STOP_TIMEOUT_S = 3.0
# A signal takes microseconds to act; what takes longer hangs in a driver.
PAUSE_TIMEOUT_S = 1.0
PAUSE_POLL_S = 0.0002
STDERR_TAIL = 300


class SamplerProcess:
    """Samples while the `with` block runs.

    Args:
        pid: process to watch; the one that asks, if not given.
        period_s: seconds between samples.
    """

    def __init__(self, pid: int | None = None, period_s: float = DEFAULT_PERIOD_S) -> None:
        self._pid = os.getpid() if pid is None else pid
        self._period_s = period_s
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._failure: str | None = None
        self._paused = False
        self._samples = Samples(ended="the sampler has not ended yet")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The sampler's own process; None when it did not start."""
        return None if self._process is None else self._process.pid

    @property
    def samples(self) -> Samples:
        """Everything it saw; complete once it was stopped."""
        return self._samples

    @property
    def reports(self) -> list[SensorReport]:
        """What each sensor says of itself; complete once the sampler was stopped."""
        return self._samples.reports

    def utilization(self, begin_ns: int, end_ns: int) -> Utilization:
        """Of the window; see `steady_utilization`."""
        return utilization(self._samples, begin_ns, end_ns)

    def energies(self, begin_ns: int, end_ns: int) -> list[Energy]:
        """Of the window; see `steady_energy`."""
        return energies(self._samples, begin_ns, end_ns)

    def start(self) -> None:
        """Start the sampler and wait until it samples."""
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="kit-sampler-", ignore_cleanup_errors=True)
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            self._failure = f"the sampler could not be started: {error}"
            return
        if not self._is_ready(self._process):
            self._failure = f"the sampler was not ready within {READY_TIMEOUT_S:g} s"

    def pause(self) -> bool:
        """Take it off the CPU (SIGSTOP) and wait until it is; False: it has ended, or does not stop.

        A stopped process has no timer running and is not woken; on `resume` it goes on with all its files open.
        """
        if not self._paused:
            self._paused = self._signal(signal.SIGSTOP, os.WSTOPPED)
        return self._paused

    def resume(self) -> bool:
        """Let it go on where it was paused; deadlines that have passed are left out. False: it has ended."""
        if self._paused:
            self._paused = not self._signal(signal.SIGCONT, os.WCONTINUED)
            return not self._paused
        return self._is_running

    def _signal(self, number: signal.Signals, awaited: int) -> bool:
        """Send a job control signal and wait until it has acted; False when it has not within `PAUSE_TIMEOUT_S`."""
        if self._process is None or not self._is_running:
            return False
        self._process.send_signal(number)
        deadline_ns = now_ns() + int(PAUSE_TIMEOUT_S * 1e9)
        while now_ns() < deadline_ns:
            # WNOWAIT: how it ended is left for `stop` to read.
            change = os.waitid(os.P_PID, self._process.pid, awaited | os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if change is not None:
                return change.si_code in (os.CLD_STOPPED, os.CLD_CONTINUED)
            time.sleep(PAUSE_POLL_S)
        return False

    def stop(self) -> None:
        """End the sampler and read what it wrote."""
        stderr = self._end()
        if self._folder is None:
            self._samples = Samples(ended=self._failure or "the sampler was not started")
            return
        samples = read_samples(self._file)
        self._folder.cleanup()
        if self._failure is not None:
            samples = replace(samples, ended=self._failure)
        elif self._process is not None and self._process.returncode != 0:
            samples = replace(samples, ended=f"{samples.ended}: {_how_it_ended(self._process.returncode, stderr)}")
        self._samples = samples

    @property
    def _is_running(self) -> bool:
        return self._failure is None and self._process is not None and self._process.poll() is None

    @property
    def _file(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / "samples.jsonl"

    def _command(self) -> list[str]:
        return [
            sys.executable,
            "-m",
            "kit.worker.sampler",
            f"--pid={self._pid}",
            f"--out={self._file}",
            f"--period-s={self._period_s}",
            "--until-stdin-closes",
        ]

    @staticmethod
    def _is_ready(process: subprocess.Popen[bytes]) -> bool:
        """False when it hangs. One that ended answers with an empty line, and says why when it is stopped."""
        assert process.stdout is not None
        deadline_ns = now_ns() + int(READY_TIMEOUT_S * 1e9)
        readable, _, _ = select.select([process.stdout], [], [], (deadline_ns - now_ns()) / 1e9)
        if readable:
            process.stdout.readline()
        return bool(readable)

    def _end(self) -> str:
        """Tell it to end, and kill it if that does not help. Its last words.

        The closing of its standard input would not do: a process that the worker forked may hold the other end, too.
        """
        if self._process is None:
            return ""
        self._process.terminate()
        if self._paused:
            self._process.send_signal(signal.SIGCONT)  # a stopped process does not take the other
        try:
            _, stderr = self._process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, stderr = self._process.communicate()
        except OSError:
            with contextlib.suppress(OSError):
                self._process.kill()
            self._process.wait()
            stderr = b""
        return stderr.decode(errors="replace").strip()[-STDERR_TAIL:]


def _how_it_ended(code: int, stderr: str) -> str:
    words = f"signal {-code}" if code < 0 else f"exit {code}"
    last_line = stderr.splitlines()[-1] if stderr else ""
    return f"{words}, {last_line}" if last_line else words
