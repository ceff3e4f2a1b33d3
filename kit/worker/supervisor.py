"""The first process of a container: starts a command, and ends it when the container's input ends.

    engine ── input ──► supervisor ── lines that are not its own ──► command
           ◄────────────────── output, errors ───────────────────────┘

A client that dies, by whatever signal, closes the input; nothing that it started goes on without it. Two lines are the
supervisor's own: PAUSE stops the command's process group, and answers STOPPED when it has; RESUME continues it.

Usage: ``python -m kit.worker.supervisor [--grace S] COMMAND …``; the exit status is the command's, 128 + its signal.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

PAUSE = b'{"do":"pause"}\n'
RESUME = b'{"do":"resume"}\n'
STOPPED = b'{"say":"stopped"}\n'
# What ends a container, and a terminal that has gone.
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
POLL_S = 0.0002
READ_B = 1 << 16


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m kit.worker.supervisor")
    parser.add_argument("--grace", type=float, default=0.0, metavar="S", help="between SIGTERM and SIGKILL")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    child = subprocess.Popen(arguments.command, stdin=subprocess.PIPE, start_new_session=True)
    for number in FORWARDED:
        signal.signal(number, lambda number, _frame: _signal(child, number))
    threading.Thread(target=_serve, args=(child, arguments.grace), daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def _serve(child: subprocess.Popen[bytes], grace_s: float) -> None:
    """Pass lines on until there are no more; then end the command."""
    assert child.stdin is not None
    for line in _lines():
        if line == PAUSE:
            _pause(child)
        elif line == RESUME:
            _signal(child, signal.SIGCONT)
        else:
            with suppress(OSError):  # it has ended, and the main thread knows
                child.stdin.write(line)
                child.stdin.flush()
    if grace_s:
        _signal(child, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(grace_s)
    _signal(child, signal.SIGKILL)


def _lines() -> Iterator[bytes]:
    """Yield the lines of standard input; unbuffered, as Python ends badly while a thread waits in a buffer."""
    unread = b""
    while data := os.read(0, READ_B):
        *whole, unread = (unread + data).split(b"\n")
        yield from (line + b"\n" for line in whole)


def _pause(child: subprocess.Popen[bytes]) -> None:
    _signal(child, signal.SIGSTOP)
    with suppress(ChildProcessError):  # it has ended, and the main thread knows
        while os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOHANG) is None:
            time.sleep(POLL_S)
        sys.stdout.buffer.write(STOPPED)
        sys.stdout.buffer.flush()


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


if __name__ == "__main__":
    sys.exit(main())
