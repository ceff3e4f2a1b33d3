"""How much of its CPUs other work took from this process.

    CPUs that it may use    ├── own ──┤── others' ──┤── idle ──┤
    almost nothing idle     what others used, it could have used: taken
    some idle               the scheduler had a CPU for it: nothing was taken

Neither steps nor the sampler see it: a step that waits for a CPU looks like a slow step, and steps that wait for whole
time slices are steady as can be.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from kit.sensors.machine_cpu import busy_s

PROC_STAT = Path("/proc/stat")
# Clock ticks of 10 ms, of one CPU and the other, blur anything shorter.
WINDOW_S_MIN = 0.2
# From here on the CPUs have no time left that is worth the name.
BUSY_SHARE_FULL = 0.9


class CpuUse(NamedTuple):
    """Counters, cumulative."""

    at_s: float
    own_s: float  # CPU time of this process, all threads
    busy_s: float  # of the CPUs that it may use, whoever used them


def cpu_use(cpus: Collection[int], stat: Path = PROC_STAT) -> CpuUse | None:
    """Now, of `cpus`; null where the kernel does not list them."""
    names = {f"cpu{cpu}".encode() for cpu in cpus}
    try:
        lines = [line for line in stat.read_bytes().splitlines() if line.partition(b" ")[0] in names]
        busy = sum(busy_s(line) for line in lines)
    except (OSError, ValueError):
        return None
    return CpuUse(time.monotonic(), time.process_time(), busy) if len(lines) == len(names) else None


def taken_pct(before: CpuUse | None, after: CpuUse | None, cpus: int) -> tuple[float | None, str | None]:
    """Percent of one CPU that others took between the two looks, and why it is not known.

    Args:
        before, after: from `cpu_use`.
        cpus: how many this process may use.
    """
    if before is None or after is None:
        return None, f"{PROC_STAT} does not list the CPUs that the worker may use"
    seconds = after.at_s - before.at_s
    if seconds < WINDOW_S_MIN:
        return (
            None,
            f"steady for {seconds:.2g} s, and the kernel counts in ticks of 10 ms: {WINDOW_S_MIN:g} s are needed",
        )
    busy, own = (after.busy_s - before.busy_s) / seconds, (after.own_s - before.own_s) / seconds
    if busy < BUSY_SHARE_FULL * cpus:
        return 0.0, None
    return 100 * max(0.0, min(busy, cpus) - own), None
