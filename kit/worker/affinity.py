"""Pin the worker to its CPUs and tell numerical libraries their thread count, before any of them is imported."""

from __future__ import annotations

import os

# Read once by OpenMP, oneDNN, OpenBLAS and MKL when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def pin(cpus: list[int], threads: int) -> list[int]:
    """Pin this process (and what it starts) to `cpus`, if any are named; gives the CPUs it may now use."""
    if cpus:
        os.sched_setaffinity(0, cpus)
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    return sorted(os.sched_getaffinity(0))
