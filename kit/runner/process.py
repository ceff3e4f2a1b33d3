"""One worker behind its supervisor, wherever both are: lines through its pipes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress

import msgspec
import psutil

from kit.errors import KitError
from kit.profile.fields import Reason, reason
from kit.runner.target import Command
from kit.worker.messages import Answers, Ended, Requests
from kit.worker.supervisor import ENDED, STOP

READ_B = 1 << 20
# Enough of standard error to see the framework's own message, not its whole stack.
STDERR_TAIL_LINES, STDERR_TAIL_B = 20, 8000
# A supervisor kills in microseconds; a busy container engine takes its time to remove what has ended.
ENDS_S = 60.0
# srun and a container's client get this long to say how they ended once their output has ended.
CLOSED_S = 5.0
# What a shell, srun and a container engine add to the number of a signal.
SIGNAL_BASE = 128


class Process:
    """One worker. It runs from a request until it is stopped, and no longer than this object's process.

    Raises:
        KitError: the command cannot be started.
    """

    def __init__(self, command: Command) -> None:
        self._folder = command.folder
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as this object
        try:
            self._popen = subprocess.Popen(
                command.words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=command.environment,
                pass_fds=command.network,
                bufsize=0,
                start_new_session=True,  # an interrupt from the terminal is the runner's alone
            )
        except OSError as error:
            raise KitError(
                f"{command.words[0]} cannot be started: {error.strerror}; install it, or mend its path"
            ) from None
        self._unread = b""
        self._decoder: msgspec.json.Decoder[Answers] = msgspec.json.Decoder(Answers)

    def fileno(self) -> int:
        """Return what is readable when an answer may have come."""
        assert self._popen.stdout is not None
        return self._popen.stdout.fileno()

    def ask(self, request: Requests) -> None:
        """Send a request, which continues the worker."""
        self._send(msgspec.json.encode(request) + b"\n")

    def stop(self) -> None:
        """Ask the supervisor to stop the worker; it answers `Stopped`."""
        self._send(STOP)

    def answer(self) -> Answers | None:
        """Return the next answer if all of it has come; `fileno` is readable."""
        if b"\n" not in self._unread:
            data = os.read(self.fileno(), READ_B)
            if not data:
                return Ended(reason=self._why_closed())
            self._unread += data
        line, newline, rest = self._unread.partition(b"\n")
        if not newline:
            return None
        self._unread = rest
        # A worker that is killed while it writes leaves half an answer in front of its supervisor's last line.
        _, marker, last = line.rpartition(ENDED)
        try:
            answer = self._decoder.decode(marker + last)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Ended(reason=reason("protocol", message=str(error)))
        if isinstance(answer, Ended) and answer.reason.code == "exit_code":
            message = (self.stderr_tail().splitlines() or [""])[-1]
            return Ended(reason=reason("exit_code", **answer.reason.values | {"message": message}))
        return answer

    def stderr_tail(self) -> str:
        """Return the last lines that it wrote to standard error."""
        size_b = os.fstat(self._errors.fileno()).st_size
        tail = os.pread(self._errors.fileno(), STDERR_TAIL_B, max(0, size_b - STDERR_TAIL_B))
        return "\n".join(tail.decode(errors="replace").splitlines()[-STDERR_TAIL_LINES:]).strip()

    def end(self) -> None:
        """Close its input: the supervisor kills the worker, wherever it is. Waits for nothing."""
        assert self._popen.stdin is not None
        with suppress(OSError):
            self._popen.stdin.close()

    def wait(self) -> None:
        """Wait until it has gone, after `end`, and remove what is left."""
        # Nobody reads any more: a supervisor must not wait for room to say how the worker ended.
        assert self._popen.stdout is not None
        self._popen.stdout.close()
        try:
            self._popen.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()
        self._errors.close()
        if not self._folder:
            return
        # What the worker has started in sessions of their own is left, and all of it where the supervisor was killed.
        # psutil would take a process for an earlier one that had its number, and not kill it.
        psutil.process_iter.cache_clear()
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("TMPDIR") == self._folder:
                    process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, line: bytes) -> None:
        assert self._popen.stdin is not None
        with suppress(OSError):  # it has ended, as its answer will show
            self._popen.stdin.write(line)

    def _why_closed(self) -> Reason:
        """Return how the supervisor, or what stood in front of it, ended without a word."""
        try:
            code = self._popen.wait(CLOSED_S)
        except subprocess.TimeoutExpired:
            return reason("closed_its_pipes")
        number = -code if code < 0 else code - SIGNAL_BASE
        if number in {*signal.Signals}:
            return reason("supervisor_ended", signal=signal.Signals(number).name)
        message = (self.stderr_tail().splitlines() or [""])[-1]
        return reason("exit_code", exit_code=code, message=message)
