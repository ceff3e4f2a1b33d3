"""Two modes: a member's blocks lie at one of two levels, and its median jumps from one to the other.

▁▁▁▁▁████▁▁▁▁████▁▁▁▁▁▁██      within a round, or from one fresh start to the next
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.audit.contention import cpu_loss
from kit.audit.finding import Finding
from kit.audit.kernel_time import FAULTS_LEAST_PER_CPU_MS, other_allocator
from kit.audit.member import Member
from kit.profile.launch import Launch
from kit.stats.modes import GAP_LEAST_PLAIN, TwoModes, modes_by_cause, two_modes

# Of the slow mode's faults per step, in the fast one: then the faults are what parts the modes.
FEW_FAULTS_SHARE = 0.5


class Modes(NamedTuple):
    """Which blocks of a member were in its slow mode; arrays have the shape (blocks,)."""

    rounds: NDArray[Any]
    cycles: NDArray[Any]
    slow: NDArray[np.bool_]
    step_ns: tuple[float, float]  # in the fast and in the slow mode
    faults_per_step: tuple[float, float] | None  # where they part the modes
    slowed_log: float  # ln of slow over fast, relative to the others of the group where there are any


def find(member: Member) -> Finding | None:
    """Find members in two modes, and whether page faults part them."""
    modes = modes_of(member)
    if modes is None:
        return None
    values = {
        "fast_step_ns": modes.step_ns[0],
        "slow_step_ns": modes.step_ns[1],
        "slow_share_pct": 100 * float(modes.slow.mean()),
    }
    rank = 100 * (1 - math.exp(-modes.slowed_log))
    if modes.faults_per_step is None:
        return Finding("two_modes", member.cell.key, member.group, values, rank, None, ("stalls",))
    fast, slow = modes.faults_per_step
    values |= {"fast_faults_per_step": fast, "slow_faults_per_step": slow}
    explains = ("stalls", "page_faults", "kernel_share")
    remedy = other_allocator(member.variant)
    return Finding("two_modes_page_faults", member.cell.key, member.group, values, rank, remedy, explains)


def modes_of(member: Member) -> Modes | None:
    """Return the two modes of a member; None where drift or contention explains them, or it is a fit."""
    # Stretches of a fit lie too far apart for the machine's drift to be told from modes.
    blocks = [] if member.cell.task == "fit" else _blocks(member)
    if not blocks:
        return None
    rounds, cycles, times, beside, faults, cpu_ms = np.array(blocks).T
    alone = not member.paired_rounds
    relative = times - (0.0 if alone else beside)
    counted = bool(np.all(np.isfinite(faults)))
    modes: TwoModes | None = None
    # A cause that is there or not tells the modes better than times, which noise and drift blur.
    if counted and np.quantile(faults / cpu_ms, 0.9) >= FAULTS_LEAST_PER_CPU_MS:
        modes = modes_by_cause(relative, faults)
    if modes is None:
        modes = two_modes(times, gap_least=GAP_LEAST_PLAIN) if alone else two_modes(relative, own_log=times)
    if modes is None:
        return None
    slow = modes.slow
    fast_faults, slow_faults = (float(np.median(faults[part])) if counted else math.nan for part in (~slow, slow))
    parted = counted and fast_faults <= FEW_FAULTS_SHARE * slow_faults
    parted = parted and slow_faults / float(np.median(cpu_ms[slow])) >= FAULTS_LEAST_PER_CPU_MS
    if not parted and _is_contended(member, rounds[slow], cycles[slow]):
        return None
    return Modes(
        rounds=rounds,
        cycles=cycles,
        slow=slow,
        step_ns=(math.exp(np.median(times[~slow])), math.exp(np.median(times[slow]))),
        faults_per_step=(fast_faults, slow_faults) if parted else None,
        slowed_log=modes.slow_log - modes.fast_log,
    )


def _is_contended(member: Member, rounds: NDArray[Any], cycles: NDArray[Any]) -> bool:
    """Whether others had the CPUs in these blocks: then they are slow for that, and not by a mode of the member's."""
    lost = cpu_loss(list(member.launches.values()), set(zip(rounds.tolist(), cycles.tolist(), strict=True)))
    return lost is not None and lost.is_contended


def _blocks(member: Member) -> list[tuple[float, ...]]:
    """Return round, cycle, ln step, mean ln step of the others, faults and CPU ms per step, of each block.

    Of members that took turns only the cycles that all have; faults are nan where they were not read.
    """
    rows: list[tuple[float, ...]] = []
    paired = member.paired_rounds
    for number in paired or member.launches:
        launch = member.launches[number]
        beside = [other[number] for other in member.others] if paired else []
        others = [dict(zip(other.blocks.cycle, _log_steps(other), strict=True)) for other in beside]
        blocks = launch.blocks
        nothing: list[int | None] = [None] * len(blocks.cycle)
        faults, cpu_ns = (blocks.counters.get(name, nothing) for name in ("process.minor_faults", "process.cpu_ns"))
        for cycle, log_step, steps, fault, cpu in zip(
            blocks.cycle, _log_steps(launch), blocks.all_steps(), faults, cpu_ns, strict=True
        ):
            if not all(cycle in other for other in others):
                continue
            read = fault is not None and cpu is not None and cpu > 0
            rows.append(
                (
                    float(number),
                    float(cycle),
                    log_step,
                    sum(other[cycle] for other in others) / len(others) if others else 0.0,
                    (fault or 0) / steps if read else math.nan,
                    (cpu or 0) / 1e6 / steps if read else math.nan,
                )
            )
    return rows


def _log_steps(launch: Launch) -> list[float]:
    """Return ln of the step time of each block."""
    blocks = launch.blocks
    return [math.log(duration_ns / steps) for duration_ns, steps in zip(blocks.duration_ns, blocks.steps, strict=True)]
