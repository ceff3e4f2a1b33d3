"""Ends a launch with all that it started: nothing may run on beside the next one.

The worker leads a session of its own, so one signal reaches it and its children. A child that began a session of its
own, or whose parent has gone, is found by the environment that it inherited.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import time
from pathlib import Path

# In the worker's environment and in that of all that it starts: the launch's own folder, a name that no other has.
LAUNCH_VARIABLE = "KIT_LAUNCH"
# A child that starts another while it is looked for is found on the next look; more of them are no accident.
LOOKS = 5
# The kernel takes a moment to take a killed process away.
BETWEEN_LOOKS_S = 0.02
# And seconds where it frees a hundred gigabytes or a GPU. What takes longer is stuck in the kernel: a driver, a disk.
ENDED_WITHIN_S = 30.0


class StuckWorkerError(OSError):
    """A worker that heeds no SIGKILL: what ran next would run beside it, on a machine that something is wrong with."""

    def __init__(self, pid: int) -> None:
        words = f"the worker does not end within {ENDED_WITHIN_S:g} s of SIGKILL (state {_state(pid)})"
        super().__init__(errno.EBUSY, words, f"process {pid}")


def end_launch(worker: subprocess.Popen[bytes], folder: Path) -> bool:
    """Kill the worker's process group, then whatever else carries the mark of `folder`. False: the worker is stuck."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        worker.wait(ENDED_WITHIN_S)
    end_marked(folder)
    return worker.poll() is not None


def end_marked(folder: Path) -> None:
    """Kill whatever carries the mark of `folder`."""
    for _ in range(LOOKS):
        left = _marked(folder)
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(BETWEEN_LOOKS_S)


def _marked(folder: Path) -> list[int]:
    mark = f"{LAUNCH_VARIABLE}={folder}".encode()
    return [pid for pid in _processes() if mark in _environment(pid)]


def _processes() -> list[int]:
    try:
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _state(pid: int) -> str:
    """One letter, as in `ps`: D is uninterruptible."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "unknown"


def _environment(pid: int) -> list[bytes]:
    """As it was when the process began; empty for a process of another user, and for one that has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
