"""Environment variables that decide how fast a worker is.

Some set its threads, some are read by its framework, and `KIT_FRAMEWORK_DEFAULTS` leaves an accelerator's settings to
each framework. Otherwise Steadykit makes them the same in all frameworks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatch

from kit.backends.entry import BackendEntry
from kit.environment import FRAMEWORK_DEFAULTS
from kit.profile.cell import FRAMEWORKS_OWN, Cell

# Libraries read these when they are loaded, before the worker can set their threads. A variant that sets one of them
# takes over the threads of its workers.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC",
    "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
)  # fmt: skip
# cuBLAS and cuDNN obey this variable and not the framework that calls them.
TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
# Every process reads these, whichever framework is in it.
EVERY_PROCESS = ("LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_*", "TCMALLOC_*", "JEMALLOC_*", TF32_OVERRIDE)


def decided_by_environment(entry: BackendEntry, variables: Mapping[str, str], threads_set: bool) -> dict[str, str]:
    """Return the `variables` that decide a framework's speed; without those of threads if Steadykit set the threads."""
    return {
        name: variables[name]
        for name in sorted(variables)
        if any(fnmatch(name, pattern) for pattern in (*EVERY_PROCESS, *entry.decided_by))
        and not (threads_set and name in THREAD_VARIABLES)
    }


def keeps_defaults() -> bool:
    """Return whether the framework keeps its own search for kernels and its own use of memory."""
    return os.environ.get(FRAMEWORK_DEFAULTS, "") not in ("", "0")


def keeps_precision(cell: Cell) -> bool:
    """Return whether the framework decides what float32 is computed in."""
    return cell.device != "cpu" and cell.precision == FRAMEWORKS_OWN


def tf32_setting(value: object) -> str:
    """Return a switch of float32's precision on a GPU, with the variable that overrides it if that is set."""
    override = os.environ.get(TF32_OVERRIDE)
    return str(value) if override is None else f"{value} ({TF32_OVERRIDE}={override})"


def variables_set(*names: str) -> dict[str, str]:
    """Return those of FRAMEWORK_DEFAULTS and `names` that are set, with their values."""
    return {name: value for name in (FRAMEWORK_DEFAULTS, *names) if (value := os.environ.get(name))}
