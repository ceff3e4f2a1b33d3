"""Ends a launch with all that it started: nothing may run on beside the next one.

The worker leads a session of its own, so one signal reaches it and its children. A child that began a session of its
own, or whose parent has gone, is found by the environment that it inherited.
"""

from __future__ import annotations

import contextlib
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


def end_launch(worker: subprocess.Popen[bytes], folder: Path) -> None:
    """Kill the worker's process group, then whatever else carries the mark of `folder`."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
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


def _environment(pid: int) -> list[bytes]:
    """As it was when the process began; empty for a process of another user, and for one that has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
