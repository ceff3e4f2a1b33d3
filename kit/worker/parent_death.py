"""A worker does not outlive the engine that started it: nobody would read what it measures."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

# From <linux/prctl.h>; prctl(2).
PR_SET_PDEATHSIG = 1


def die_with(engine: int) -> None:
    """Have the kernel end this process when its parent dies. `engine`: process id of whoever started the launch.

    On a system without prctl nothing is done: the engine still ends its workers, unless it is killed itself.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        return
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # It may have died before the kernel was asked. Its process id is looked for rather than our parent's, because a
    # wrapper script named in KIT_PYTHON_<BACKEND> may stand between.
    try:
        os.kill(engine, 0)
    except ProcessLookupError:
        sys.exit(1)
    except PermissionError:
        return
