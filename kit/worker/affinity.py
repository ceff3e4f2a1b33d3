"""Pin the worker to its CPUs, before a framework counts them."""

from __future__ import annotations

import os


def pin(cpus: list[int]) -> list[int]:
    """Pin this process (and what it starts) to `cpus`, if any are named; gives the CPUs it may now use."""
    if cpus:
        os.sched_setaffinity(0, cpus)
    return sorted(os.sched_getaffinity(0))
