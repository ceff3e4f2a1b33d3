"""Two modes: a member's blocks lie at one of two levels, and its median jumps from one to the other.

▁▁▁▁▁████▁▁▁▁████▁▁▁▁▁▁██      within a round, or from one fresh start to the next
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kit.audit.contention import cpu_loss
from kit.audit.kernel_time import FAULTS_LEAST_PER_CPU_MS, other_allocator
from kit.audit.launch_arrays import Place
from kit.audit.rule import Member, Outcome, rule
from kit.profile.launch import Launch
from kit.profile.reason import Value
from kit.stats.modes import GAP_LEAST_PLAIN, TwoModes, modes_by_cause
from kit.stats.modes import two_modes as modes_by_level

# Of the slow mode's faults per step, in the fast one: then the faults are what parts the modes.
FEW_FAULTS_SHARE = 0.5


class Modes(NamedTuple):
    """The two modes of a member."""

    is_slow: dict[Place, bool]  # of each block
    step_ns: tuple[float, float]  # in the fast and in the slow mode
    faults_per_step: tuple[float, float] | None  # where they part the modes
    slowed_log: float  # ln of slow over fast, relative to the others of the group where there are any


@rule("member", worst="warning", also=("bimodal_page_faults",))
def bimodal(member: Member) -> Outcome:
    """Find cells whose step time is bimodal, and whether page faults differ between the modes."""
    modes = modes_of(member)
    if modes is None:
        return None
    values: dict[str, Value] = {
        "fast_step_ns": modes.step_ns[0],
        "slow_step_ns": modes.step_ns[1],
        "slow_share_pct": 100 * float(np.mean(list(modes.is_slow.values()))),
    }
    rank = 100 * (1 - math.exp(-modes.slowed_log))
    if modes.faults_per_step is None:
        return member.finding("bimodal", "warning", values, rank, explains=("stalls",))
    fast, slow = modes.faults_per_step
    values |= {"fast_faults_per_step": fast, "slow_faults_per_step": slow}
    explains = ("stalls", "page_faults", "kernel_share")
    return member.finding("bimodal_page_faults", "warning", values, rank, other_allocator(member.variant), explains)


def modes_of(member: Member) -> Modes | None:
    """Return the two modes of a member; None where drift or contention explains them, or it is a fit."""
    # Stretches of a fit lie too far apart for the machine's drift to be told from modes.
    blocks = {} if member.cell.task == "fit" else _blocks(member)
    if not blocks:
        return None
    times, beside, faults, cpu_ms = np.array(list(blocks.values())).T
    alone = not member.paired_rounds
    relative = times if alone else times - beside
    counted = bool(np.all(np.isfinite(faults)))
    modes: TwoModes | None = None
    # A cause that is there or not tells the modes better than times, which noise and drift blur.
    if counted and np.quantile(faults / cpu_ms, 0.9) >= FAULTS_LEAST_PER_CPU_MS:
        modes = modes_by_cause(relative, faults)
    if modes is None:
        modes = modes_by_level(times, gap_least=GAP_LEAST_PLAIN) if alone else modes_by_level(relative, own_log=times)
    if modes is None:
        return None
    slow, is_slow = modes.slow, dict(zip(blocks, modes.slow.tolist(), strict=True))
    fast_faults, slow_faults = (float(np.median(faults[part])) if counted else math.nan for part in (~slow, slow))
    parted = counted and fast_faults <= FEW_FAULTS_SHARE * slow_faults
    parted = parted and slow_faults / float(np.median(cpu_ms[slow])) >= FAULTS_LEAST_PER_CPU_MS
    if not parted:
        lost = cpu_loss(member.cell, member.launches.values(), {place for place in blocks if is_slow[place]})
        if lost is not None and lost.is_contended:  # these blocks are slow because others had the CPUs
            return None
    return Modes(
        is_slow=is_slow,
        step_ns=(math.exp(np.median(times[~slow])), math.exp(np.median(times[slow]))),
        faults_per_step=(fast_faults, slow_faults) if parted else None,
        slowed_log=modes.slow_log - modes.fast_log,
    )


def _blocks(member: Member) -> dict[Place, tuple[float, float, float, float]]:
    """Return ln step, mean ln step of the others, faults and CPU ms per step, of each block.

    Of members that took turns only the cycles that all have; faults are nan where they were not read.
    """

    def log_steps_of(launch: Launch) -> dict[int, float]:
        return member.once((_log_steps, id(launch)), lambda: _log_steps(launch))

    measured = {}
    paired = member.paired_rounds
    for number in paired or member.launches:
        blocks = member.launches[number].blocks
        others = [log_steps_of(other[number]) for other in member.others] if paired else []
        nothing: list[int | None] = [None] * len(blocks.cycle)
        counters = [blocks.counters.get(name, nothing) for name in ("process.minor_faults", "process.cpu_ns")]
        log_steps = log_steps_of(member.launches[number])
        for cycle, steps, faults, cpu_ns in zip(blocks.cycle, blocks.all_steps(), *counters, strict=True):
            if not all(cycle in other for other in others):
                continue
            beside = sum(other[cycle] for other in others) / len(others) if others else 0.0
            per_step = (math.nan, math.nan)
            if faults is not None and cpu_ns is not None and cpu_ns > 0:
                per_step = (faults / steps, cpu_ns / 1e6 / steps)
            measured[number, cycle] = (log_steps[cycle], beside, *per_step)
    return measured


def _log_steps(launch: Launch) -> dict[int, float]:
    """Return ln of the step time in each cycle."""
    blocks = launch.blocks
    return {
        cycle: math.log(duration_ns / steps)
        for cycle, duration_ns, steps in zip(blocks.cycle, blocks.duration_ns, blocks.steps, strict=True)
    }
