"""JAX's CPU thread pool: how to size it, and how large it turned out.

JAX has no call for this. XLA's CPU client reads the variable NPROC once, when it starts, and otherwise takes the CPUs
the process may run on (`DefaultThreadPoolSize` in xla/pjrt/utils.cc). What it then started is counted by name.
"""

from __future__ import annotations

import os
from pathlib import Path

import jax

from kit.backends.protocol import ThreadSetting

POOL_VARIABLE = "NPROC"
POOL_THREAD_NAME = "tf_XLAEigen"  # as the kernel shows it, cut to 15 characters
TASKS = Path("/proc/self/task")


def set_pool_threads(threads: int) -> ThreadSetting:
    """Start the CPU client with `threads` threads; reports the pool's threads as the kernel lists them."""
    os.environ[POOL_VARIABLE] = str(threads)
    jax.devices("cpu")
    if not TASKS.is_dir():
        return ThreadSetting(None, "JAX does not say, and this system has no /proc to count its pool's threads in")
    counted = [_name(task) for task in TASKS.iterdir()].count(POOL_THREAD_NAME)
    if counted == 0:
        return ThreadSetting(None, f"JAX does not say, and no thread of this process is called {POOL_THREAD_NAME}")
    return ThreadSetting(counted, None)


def _name(task: Path) -> str | None:
    """Null for a thread that has ended since it was listed: JAX's start-up has some that do."""
    try:
        return (task / "comm").read_text().strip()
    except OSError:
        return None
