"""Environment variables that decide how fast a member is: those of threads, and those that its framework reads."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch

from kit.backends.entry import BackendEntry

# Read by libraries when they are loaded, which is before the worker can tell them. A variant that sets one of them
# takes the threads of its members over.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC",
    "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
)  # fmt: skip
# Of every process, whichever framework is in it.
OF_ALL = ("LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_*", "TCMALLOC_*", "JEMALLOC_*", "NVIDIA_TF32_OVERRIDE")


def decided_by_environment(entry: BackendEntry, variables: Mapping[str, str], threads_set: bool) -> dict[str, str]:
    """Return the `variables` that decide the speed of a framework; `threads_set`: by the kit, so none of threads."""
    return {
        name: variables[name]
        for name in sorted(variables)
        if any(fnmatch(name, pattern) for pattern in (*OF_ALL, *entry.decided_by))
        and not (threads_set and name in THREAD_VARIABLES)
    }
