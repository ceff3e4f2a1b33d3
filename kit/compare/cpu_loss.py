"""CPU time that a cell did not get: throttled by a cgroup's quota, or taken by others and by the hypervisor."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from kit.compare.clean_cycles import CHILDREN, IDLE_MOST, threads_of
from kit.compare.launch_arrays import Place, counted
from kit.profile.cell import Cell
from kit.profile.launch import Launch

# Of the CPUs' time. From here on the mean step is longer than the median one by what is no longer called the same;
# without a quota it is exactly nothing.
THROTTLED_LEAST_PCT = 1.0
# A member that has its CPUs to itself loses under 2 % to the system's own work; beside one busy program on two CPUs
# it is 50 %.
TAKEN_LEAST_PCT = 10.0
# What others take falls on unlike members unlike: beside one busy program on two CPUs PyTorch's threads wait for each
# other, JAX' do not. Inference that PyTorch does 1.6 times as fast was then "shown" to be 23 times as slow, and more
# rounds only narrowed that: from here on there is no verdict between them. At 17 % verdicts of the reference profiles
# are those of quiet runs.
TAKEN_BAD_PCT = 25.0


class CpuLoss(NamedTuple):
    """Shares of the time of a member's CPUs, in percent of all of them; null where they were not counted."""

    cpus: int
    throttled_pct: float | None
    others_pct: float | None
    steal_pct: float | None

    @property
    def is_throttled(self) -> bool:
        """Whether a quota kept the member from its CPUs for longer than can be passed over."""
        return self.throttled_pct is not None and self.throttled_pct >= THROTTLED_LEAST_PCT

    @property
    def contention_pct(self) -> float:
        """What others and the hypervisor took together."""
        return (self.others_pct or 0.0) + (self.steal_pct or 0.0)

    @property
    def is_contended(self) -> bool:
        """Whether they took more than the system's own work does."""
        return self.contention_pct >= TAKEN_LEAST_PCT


def cpu_loss(cell: Cell, launches: Collection[Launch], within: Collection[Place] | None = None) -> CpuLoss | None:
    """Return what these launches of a cell lost in their blocks, or in some; None where their CPUs are not known."""
    cpus = next((len(launch.threads.cpus) for launch in launches if launch.threads is not None), 0)
    if not cpus:
        return None
    throttled_pct = others_pct = steal_pct = None
    # The kernel counts each throttled CPU by itself; other processes of the group may be throttled, too.
    blocks = counted(launches, "cgroup.throttled_ns", within=within)
    if blocks is not None:
        throttled_pct = min(100.0, 100 * float(blocks.sums[0] / (blocks.span_ns.sum() * cpus)))
    blocks = counted(launches, "process.cpu_ns", "machine.busy_ns", "machine.steal_ns", within=within)
    if blocks is not None:
        own_ns, busy_ns, steal_ns = blocks.values
        # Workers of a data loader are the cell's own; older kits did not count children.
        children = counted(launches, "process.cpu_ns", "machine.busy_ns", "machine.steal_ns", CHILDREN, within=within)
        own_ns = own_ns if children is None or len(children.steps) < len(own_ns) else own_ns + children.values[-1]
        capacity_ns = blocks.span_ns * cpus
        # Where the cell's CPUs and those that were idle are all that its threads can use, nothing was taken.
        threads = min(threads_of(cell, launch) for launch in launches if launch.threads is not None)
        if threads < cpus:
            could_have_ns = capacity_ns - steal_ns - (busy_ns - own_ns)
            full = could_have_ns < (1 - IDLE_MOST) * capacity_ns * threads / cpus
        else:
            full = capacity_ns - steal_ns - busy_ns < IDLE_MOST * capacity_ns
        # Ticks may miss the member's own time in one block and count it twice in the next: clipped when summed up.
        others_pct = max(0.0, 100 * float(np.sum((busy_ns - own_ns)[full]) / capacity_ns.sum()))
        steal_pct = 100 * float(np.sum(steal_ns[full]) / capacity_ns.sum())
    return CpuLoss(cpus, throttled_pct, others_pct, steal_pct)
