"""Which CPUs a run may use, and how many threads a framework gets for them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kit.fingerprint.this_machine import container


def usable_cpus() -> list[int]:
    """Return the CPUs that this process may run on: what affinity and cpuset allow."""
    return sorted(os.sched_getaffinity(0))


def default_threads(cpus: Sequence[int], cpu_limit: float | None) -> int:
    """Return a thread for each CPU, but no more than a quota keeps running: one more would be throttled in each period.

    Args:
        cpus: that workers are pinned to.
        cpu_limit: CPUs by cgroup quota; null: none.
    """
    return len(cpus) if cpu_limit is None else max(1, min(len(cpus), int(cpu_limit)))


def threads_here() -> int:
    """Return the default for this process."""
    return default_threads(usable_cpus(), container().number("container.cpu_limit"))
