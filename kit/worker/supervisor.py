"""Stands in front of a worker, on whatever host or in whatever container that is: stops, continues and kills it.

runner ── a request ────────► supervisor ── SIGCONT, the request ─► worker      a worker runs while it is asked
       ── STOP ─────────────►            ── SIGSTOP ──────────────►
       ── TELL ─────────────►            ── SIGTERM ──────────────►
       ── end of its input ─►            ── SIGKILL ──────────────►
       ◄─ Stopped, Ended ────────────────┤                           │
       ◄─ answers ───────────────────────────────────────────────────┘

A runner that dies, by whatever signal, closes the input, and the worker's whole process group is killed. With
`--grace` it is the first process of a container of `kit launch`: the command gets SIGTERM and so many seconds first,
and the exit status is the command's, or 128 + its signal.

Usage: ``python -m kit.worker.supervisor [--grace S] [--cpus 0,1] [--folder PATH] [--env=NAME=VALUE …]
[--network 3,4] COMMAND …``
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

STOP = b"stop\n"
# Ends the worker by a signal that lets it write where it is, if it is a user's program (`kit.worker.sudden_end`).
TELL = b"tell\n"
# How the last line begins, which says how the worker ended.
ENDED = b'{"type": "Ended"'
# What ends a container, and a terminal that has gone.
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
READ_B = 1 << 16
# From <linux/prctl.h>; prctl(2).
PR_SET_CHILD_SUBREAPER = 36
# A program whose processes start others without end is left to the system after so long.
ADOPTED_S = 5.0
# Between two looks at them. Processes that are killed end in less; one that cannot be killed must cost no CPU time.
ADOPTED_LOOK_S = 0.01


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m kit.worker.supervisor")
    parser.add_argument("--grace", type=float, metavar="S", help="between SIGTERM and SIGKILL")
    parser.add_argument("--cpus", default="", metavar="0,1", help="CPUs of the command")
    parser.add_argument(
        "--folder",
        default="",
        metavar="PATH",
        help="for temporary files, in this host's folder of them; removed at the end",
    )
    parser.add_argument("--network", default="", metavar="3,4", help="descriptors of the command's own network")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="variable of the command")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.cpus:
        # Here, as a framework counts its CPUs while it is imported.
        os.sched_setaffinity(0, [int(cpu) for cpu in arguments.cpus.split(",")])
    variables = dict(word.split("=", 1) for word in arguments.env)
    folder = Path(tempfile.gettempdir(), arguments.folder) if arguments.folder else None
    try:
        if arguments.network:
            from kit.worker.private_network import enter  # which only ranks need

            enter([int(descriptor) for descriptor in arguments.network.split(",")])
        if folder is not None:
            folder.mkdir(0o700)
            variables = {"TMPDIR": str(folder), **variables}
        supervised = _Supervised(arguments.command, variables, is_worker=arguments.grace is None)
    except OSError as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        message = f"{error.filename}: {error.strerror}"
        _say("Ended", reason={"code": "refused", "values": {"message": message}})
        return 127
    try:
        supervised.serve(forwards=arguments.grace is not None)
        if arguments.grace:
            supervised.end(arguments.grace)
    finally:
        code = supervised.kill()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
    if arguments.grace is None:
        _say("Ended", reason=supervised.how_it_ended())
        return 0
    return code if code >= 0 else 128 - code


class _Supervised:
    """The command, in a session of its own."""

    def __init__(self, command: list[str], variables: dict[str, str], *, is_worker: bool) -> None:
        self._is_worker = is_worker
        if is_worker:
            # What the worker's children leave behind becomes a child of this process, and ends with it.
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._memory_kills_before = _memory_kills()
        # Signals that come before `serve` can do what they ask for.
        self._early: list[int] = []
        for number in FORWARDED:
            signal.signal(number, lambda number, _: self._early.append(number))
        # A child that ends or stops sends SIGCHLD, which makes this pipe readable.
        self._woken, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, env={**os.environ, **variables}, start_new_session=True
        )
        self._is_stopping = False
        self._unread = b""

    def serve(self, *, forwards: bool) -> None:
        """Pass requests on until there are no more, or the command has ended."""
        for number in FORWARDED:
            signal.signal(number, (lambda number, _: self._signal(number)) if forwards else _exit)
        for early in self._early:
            signal.raise_signal(early)
        either = select.poll()
        for descriptor in (0, self._woken):
            either.register(descriptor, select.POLLIN)
        while True:
            ready = dict(either.poll())
            if self._woken in ready:
                os.read(self._woken, READ_B)
                if self._has_ended():
                    return
            if 0 in ready:
                if not (data := os.read(0, READ_B)):
                    return
                *lines, self._unread = (self._unread + data).split(b"\n")
                for line in lines:
                    self._obey(line + b"\n")

    def end(self, grace_s: float) -> None:
        """Ask the command to end, and give it some seconds."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        deadline_s = time.monotonic() + grace_s
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(max(0.0, deadline_s - time.monotonic()))

    def kill(self) -> int:
        """End the command and all that it has started; return its exit code, negative for a signal."""
        self._signal(signal.SIGKILL)
        code = self._child.wait()
        deadline_s = time.monotonic() + ADOPTED_S
        while self._is_worker and time.monotonic() < deadline_s and (adopted := _children()):
            # What these leave behind is adopted next.
            for process in adopted:
                with suppress(OSError):
                    os.kill(process, signal.SIGKILL)
                    os.waitpid(process, os.WNOHANG)  # one that is stuck in a driver does not end now
            time.sleep(ADOPTED_LOOK_S)
        return code

    def how_it_ended(self) -> dict[str, object]:
        """Return a `kit.profile.fields.Reason`: signal, exit code, or the kernel killed it for lack of memory."""
        code = self._child.returncode
        if code >= 0:
            return {"code": "exit_code", "values": {"exit_code": code}}
        if code == -signal.SIGKILL and _memory_kills() > self._memory_kills_before:
            return {"code": "out_of_memory", "values": {"signal": "SIGKILL"}}
        return {"code": "signal", "values": {"signal": signal.Signals(-code).name}}

    def _obey(self, line: bytes) -> None:
        if line == STOP:
            # SIGCHLD brings the answer: a worker that is stuck in a driver must not hide the input's end.
            self._is_stopping = True
            self._signal(signal.SIGSTOP)
            return
        self._signal(signal.SIGCONT)
        if line == TELL:
            self._child.terminate()
            return
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, which is seen next
            self._child.stdin.write(line)
            self._child.stdin.flush()

    def _has_ended(self) -> bool:
        """Look at the child; say so where it has stopped as it was asked to."""
        with suppress(ChildProcessError):  # a child that has ended is none that could stop
            if os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WNOHANG) is not None:
                if self._is_stopping:
                    self._is_stopping = False
                    _say("Stopped")
                elif self._is_worker:
                    self._signal(signal.SIGCONT)  # a program has stopped itself, and nobody would continue it
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if ended.si_pid == self._child.pid:
                return True
            os.waitpid(ended.si_pid, 0)  # the child of a child, which was adopted
        return False

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)


def _exit(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def _say(tag: str, **fields: object) -> None:
    with suppress(OSError):  # nobody reads any more
        os.write(1, json.dumps({"type": tag, **fields}).encode() + b"\n")


def _children() -> list[int]:
    """Return the processes whose parent is this one."""
    children = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # proc(5): the fields behind the name, which may hold anything.
            parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                children.append(int(folder.name))
    return children


def _memory_kills() -> int:
    """Return how many processes the kernel has killed for lack of memory; 0 where it does not count them."""
    try:
        lines = Path("/proc/vmstat").read_text("ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


if __name__ == "__main__":
    sys.exit(main())
