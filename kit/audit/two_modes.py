"""Two modes: a member's blocks lie at one of two levels, and its median jumps from one to the other.

▁▁▁▁▁████▁▁▁▁████▁▁▁▁▁▁██      within a round, or from one fresh start to the next
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from kit.audit.finding import Finding
from kit.audit.kernel_time import FAULTS_LEAST_PER_CPU_MS, other_allocator
from kit.audit.member import Member
from kit.profile.launch import Launch
from kit.stats.modes import GAP_LEAST_PLAIN, TwoModes, two_modes

# Of the slow mode's faults per step, in the fast one: then the faults are what parts the modes.
FEW_FAULTS_SHARE = 0.5

Block = tuple[Launch, int]  # its place in the launch's lists


def find(member: Member) -> Finding | None:
    """Find members in two modes, and whether page faults part them."""
    blocks = list(_cycles(member)) if member.paired else []
    relative = np.array([value for _, value in blocks])
    if not blocks:
        blocks = [((one, i), 0.0) for one in member.launches.values() for i in range(len(one.blocks.median_ns))]
    own = np.log([float(launch.blocks.median_ns[i]) for (launch, i), _ in blocks])
    modes = two_modes(relative, own_log=own) if relative.size else two_modes(own, gap_least=GAP_LEAST_PLAIN)
    if modes is None:
        return None
    values = {
        "fast_step_ns": float(np.exp(np.median(own[~modes.slow]))),
        "slow_step_ns": float(np.exp(np.median(own[modes.slow]))),
        "slow_share_pct": 100 * modes.slow_share,
    }
    rank = 100 * (1 - math.exp(modes.fast_log - modes.slow_log))
    code, remedy, explains = "two_modes", None, {"stalls"}
    faults = _faults_of_modes([block for block, _ in blocks], modes)
    if faults is not None:
        values |= {"fast_faults_per_step": faults[0], "slow_faults_per_step": faults[1]}
        code, remedy = "two_modes_page_faults", other_allocator(member.variant)
        explains |= {"page_faults", "kernel_share"}
    return Finding(code, member.cell.key, member.group, values, rank, remedy, frozenset(explains))


def _cycles(member: Member) -> Iterator[tuple[Block, float]]:
    """Yield each block of the rounds and cycles that all members have, with its ln step over the others' mean."""
    for number, launch in member.launches.items():
        if not all(number in other for other in member.others):
            continue
        others = [
            dict(zip(other[number].blocks.cycle, other[number].blocks.median_ns, strict=False))
            for other in member.others
        ]
        for i, (cycle, own_ns) in enumerate(zip(launch.blocks.cycle, launch.blocks.median_ns, strict=False)):
            if all(cycle in other for other in others):
                beside = sum(math.log(other[cycle]) for other in others) / len(others)
                yield (launch, i), math.log(own_ns) - beside


def _faults_of_modes(blocks: list[Block], modes: TwoModes) -> tuple[float, float] | None:
    """Return faults per step in the fast and in the slow mode, where they part the modes."""
    totals = np.zeros((2, 3))  # (mode, faults and steps and CPU milliseconds)
    for (launch, i), slow in zip(blocks, modes.slow, strict=True):
        faults = launch.blocks.counters.get("process.minor_faults", [])[i : i + 1]
        cpu_ns = launch.blocks.counters.get("process.cpu_ns", [])[i : i + 1]
        if faults and cpu_ns and faults[0] is not None and cpu_ns[0] is not None:
            totals[int(slow)] += faults[0], launch.blocks.lead_in[i] + launch.blocks.steps[i], cpu_ns[0] / 1e6
    if np.any(totals[:, 1:] <= 0) or totals[1, 0] / totals[1, 2] < FAULTS_LEAST_PER_CPU_MS:
        return None
    fast, slow = totals[:, 0] / totals[:, 1]
    return (float(fast), float(slow)) if fast <= FEW_FAULTS_SHARE * slow else None
