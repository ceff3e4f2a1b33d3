"""Two modes: a cell's blocks lie at one of two levels, and its median jumps from one to the other.

▁▁▁▁▁████▁▁▁▁████▁▁▁▁▁▁██      within a round, or from one fresh start to the next
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kit.compare.clean_cycles import cpu_loss
from kit.compare.launch_arrays import Place
from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.stats.shape import GAP_LEAST_PLAIN, TwoModes, modes_by_cause
from kit.stats.shape import two_modes as modes_by_level

# Page faults per millisecond of the cell's CPU time. Measured where another allocator helped by a fifth to a half:
# 90 to 190; where none helped any more: 40. At 50, a fault that costs 1.4 to 1.9 µs takes 7 to 10 % of the time.
FAULTS_LEAST_PER_CPU_MS = 50.0
# Of the slow mode's faults per step, in the fast one: then the faults are what parts the modes.
FEW_FAULTS_SHARE = 0.5

Rounds = Mapping[int, Launch]  # of one cell in one group, by round


class Modes(NamedTuple):
    """The two modes of a member."""

    is_slow: dict[Place, bool]  # of each block
    step_ns: tuple[float, float]  # in the fast and in the slow mode
    faults_per_step: tuple[float, float] | None  # where they part the modes
    slowed_log: float  # ln of slow over fast, relative to the others of the group where there are any


def modes_of(cell: Cell, launches: Rounds, others: Sequence[Rounds]) -> Modes | None:
    """Return the two modes of a cell of a group; None where drift or contention explains them, or it is a fit.

    Args:
        cell: that was measured.
        launches: by round, those that gave a number.
        others: the same of each other cell of the group that has any.
    """
    # Stretches of a fit lie too far apart for the machine's drift to be told from modes.
    blocks = {} if cell.task == "fit" else _blocks(launches, others)
    if not blocks:
        return None
    times, beside, faults, cpu_ms = np.array(list(blocks.values())).T
    alone = not paired_rounds(launches, others)
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
        lost = cpu_loss(cell, launches.values(), {place for place in blocks if is_slow[place]})
        if lost is not None and lost.is_contended:  # these blocks are slow because others had the CPUs
            return None
    return Modes(
        is_slow=is_slow,
        step_ns=(math.exp(np.median(times[~slow])), math.exp(np.median(times[slow]))),
        faults_per_step=(fast_faults, slow_faults) if parted else None,
        slowed_log=modes.slow_log - modes.fast_log,
    )


def paired_rounds(launches: Rounds, others: Sequence[Rounds]) -> list[int]:
    """Return the rounds in which a cell and all others took turns in blocks; none without others."""
    return [
        number
        for number in (launches if others else ())
        if all(number in of_cell and of_cell[number].turns == "blocks" for of_cell in (launches, *others))
    ]


def _blocks(launches: Rounds, others: Sequence[Rounds]) -> dict[Place, tuple[float, float, float, float]]:
    """Return ln step, mean ln step of the others, faults and CPU ms per step, of each block.

    Of cells that took turns only the cycles that all have; faults are nan where they were not read.
    """
    measured = {}
    paired = paired_rounds(launches, others)
    for number in paired or launches:
        blocks = launches[number].blocks
        logs_of_others = [_log_steps(other[number]) for other in others] if paired else []
        nothing: list[int | None] = [None] * len(blocks.cycle)
        counters = [blocks.counters.get(name, nothing) for name in ("process.minor_faults", "process.cpu_ns")]
        log_steps = _log_steps(launches[number])
        for cycle, steps, faults, cpu_ns in zip(blocks.cycle, blocks.all_steps(), *counters, strict=True):
            if not all(cycle in other for other in logs_of_others):
                continue
            beside = sum(other[cycle] for other in logs_of_others) / len(others) if paired else 0.0
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
