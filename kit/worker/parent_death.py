"""A worker does not outlive the engine that started it: nobody would read what it measures.

The kernel ends it when its parent dies, which is the engine, unless a script stands between (KIT_PYTHON_<BACKEND> names
one that does not `exec` its interpreter). Only then does a thread wait for the engine's end: asleep in the kernel, it
takes nothing from the measured steps.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from pathlib import Path

# From <linux/prctl.h>; prctl(2).
PR_SET_PDEATHSIG = 1
# Of /proc/PID/stat, counted from the state, which follows the name: when the process began. proc(5).
START_TIME_FIELD = 19

GONE = "the engine that started this worker has gone, or is in another process namespace"


def die_with_parent() -> bool:
    """Have the kernel end this process when its parent dies, be it stopped or not. False: a system without prctl."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        return False
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    return True


def die_with(engine: int, engine_started: int | None = None) -> None:
    """End this process and its group when the engine ends; at once where it has ended already.

    On a system without prctl or, behind a script, without pidfd (before Linux 5.3), the engine still ends its workers,
    unless it is killed itself.

    Args:
        engine: process id of whoever started the launch.
        engine_started: its `started_ticks`; not given: the process of that id is taken for it.
    """
    # Looked at when the kernel has been asked: from here on it cannot die unnoticed.
    if die_with_parent() and os.getppid() == engine:
        return
    try:
        descriptor = os.pidfd_open(engine)
    except ProcessLookupError:
        sys.exit(GONE)
    except (AttributeError, OSError):
        _exit_if_gone(engine)
        return
    # Looked at when the descriptor holds it: its number may have been another process's until then.
    if engine_started is not None and started_ticks(engine) not in (engine_started, None):
        sys.exit(GONE)
    _wait_beside(descriptor, group_is_own=_session_of(engine) not in (os.getsid(0), None))


def started_ticks(pid: int) -> int | None:
    """When the process began, in clock ticks since boot: no other has the same and its id. None: not to be seen."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[START_TIME_FIELD])
    except (OSError, IndexError, ValueError):
        return None


def _wait_beside(descriptor: int, *, group_is_own: bool) -> None:
    import threading

    ended = select.poll()
    ended.register(descriptor, select.POLLIN)

    def wait() -> None:
        ended.poll()
        if group_is_own:
            # The script, the sampler and whatever else the worker started.
            os.killpg(0, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="end with the engine", daemon=True).start()


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _exit_if_gone(engine: int) -> None:
    try:
        os.kill(engine, 0)
    except ProcessLookupError:
        sys.exit(GONE)
    except PermissionError:
        return
