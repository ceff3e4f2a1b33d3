"""Bimodal cells: a cell's blocks lie at one of two levels, and its median jumps from one to the other.

▁▁▁▁▁████▁▁▁▁████▁▁▁▁▁▁██      within a round, or from one fresh start to the next
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from kit.compare.blocks import BlockId, block_times_ns
from kit.compare.clean_cycles import cpu_loss
from kit.profile.cell import Cell
from kit.profile.schema import Launch
from kit.stats.modes_and_trends import GAP_LEAST_PLAIN, GAP_LEAST_RELATIVE, levels, modes_by_cause, quantile
from kit.stats.modes_and_trends import two_modes as modes_by_level

# Page faults per millisecond of the cell's CPU time. Measured where another allocator helped by a fifth to a half:
# 90 to 190; where none helped any more: 40. At 50, a fault that costs 1.4 to 1.9 µs takes 7 to 10 % of the time.
FAULTS_LEAST_PER_CPU_MS = 50.0
# The modes differ by their page faults if the fast one has at most this fraction of the slow one's faults per step.
FEW_FAULTS_FRACTION = 0.5

Rounds = Mapping[int, Launch]  # of one cell in one group, by round


class Modes(NamedTuple):
    """The two modes of a cell."""

    is_slow: dict[BlockId, bool]  # of each block
    step_ns: tuple[float, float]  # in the fast and in the slow mode
    faults_per_step: tuple[float, float] | None  # where the modes differ by them
    slowed_log: float  # ln of slow over fast, relative to the others of the group where there are any


def group_modes(cells: Mapping[str, tuple[Cell, Rounds]]) -> dict[str, Modes]:
    """Return the two modes of each cell that has them; none of a fit, nor where drift or contention explains them.

    Args:
        cells: those of one group that gave a number, by key, with their launches.
    """
    rounds = [launches for _, launches in cells.values()]
    # Rounds in which all cells took turns in blocks: the machine's drift cancels between those of one cycle.
    paired = [
        number
        for number in (rounds[0] if len(rounds) > 1 else ())
        if all(number in launches and launches[number].turns == "blocks" for launches in rounds)
    ]
    logs = {
        key: {
            (number, cycle): math.log(step_ns)
            for number in paired or launches
            for cycle, step_ns in zip(launches[number].blocks.cycle, block_times_ns(launches[number]), strict=True)
        }
        for key, (_, launches) in cells.items()
    }
    # Sums over the cells of the blocks in cycles that all of them have.
    common = set.intersection(*map(set, logs.values())) if paired else set()
    sums = {block: sum(cell_logs[block] for cell_logs in logs.values()) for block in common}
    known: dict[str, Modes] = {}
    for key, (cell, launches) in cells.items():
        own_logs = {block: log for block, log in logs[key].items() if not paired or block in sums}
        # The mean of the others in the same cycle is taken away where there are any.
        beside = [(sums[block] - log) / (len(cells) - 1) for block, log in own_logs.items()] if paired else []
        # Stretches of a fit lie too far apart for the machine's drift to be distinguished from modes.
        modes = _modes(cell, launches, own_logs, beside) if own_logs and cell.task != "fit" else None
        if modes is not None:
            known[key] = modes
    return known


def _modes(cell: Cell, launches: Rounds, logs: Mapping[BlockId, float], beside: Sequence[float]) -> Modes | None:
    """Return the two modes of a cell, given ln of the step time of each block, and of the others' beside it."""
    own_logs = [*logs.values()]
    relative = [log - others for log, others in zip(own_logs, beside, strict=True)] if beside else own_logs
    if max(relative) - min(relative) < GAP_LEAST_RELATIVE:  # no two levels of these lie far enough apart
        return None
    faults, cpu_ms = _faults_and_cpu(launches, logs)
    modes = None
    # A cause that is there or not tells the modes better than times, which noise and drift blur.
    per_cpu_ms = [count / time_ms for count, time_ms in zip(faults, cpu_ms, strict=True)]
    if faults and quantile(per_cpu_ms, 0.9) >= FAULTS_LEAST_PER_CPU_MS:
        modes = modes_by_cause(relative, faults)
    if modes is None:
        limits = {"own_log": own_logs} if beside else {"gap_least": GAP_LEAST_PLAIN}
        modes = modes_by_level(relative, **limits)
    if modes is None:
        return None
    is_slow = dict(zip(logs, modes.slow, strict=True))
    fast_ns, slow_ns = map(math.exp, levels(own_logs, modes.slow))
    fast_faults, slow_faults = levels(faults, modes.slow) if faults else (math.inf, 0.0)
    by_faults = (
        fast_faults <= FEW_FAULTS_FRACTION * slow_faults
        and slow_faults / levels(cpu_ms, modes.slow)[1] >= FAULTS_LEAST_PER_CPU_MS
    )
    if not by_faults:
        lost = cpu_loss(cell, launches.values(), {block for block, slow in is_slow.items() if slow})
        if lost is not None and lost.is_contended:  # these blocks are slow because others had the CPUs
            return None
    return Modes(
        is_slow=is_slow,
        step_ns=(fast_ns, slow_ns),
        faults_per_step=(fast_faults, slow_faults) if by_faults else None,
        slowed_log=modes.slow_log - modes.fast_log,
    )


def _faults_and_cpu(launches: Rounds, chosen: Mapping[BlockId, float]) -> tuple[list[float], list[float]]:
    """Return page faults and CPU ms per step of each chosen block; both empty unless all have both."""
    rows: list[list[Any]] = []
    for number in dict.fromkeys(number for number, _ in chosen):
        blocks = launches[number].blocks
        columns = (blocks.counters.get(name, repeat(None)) for name in ("process.minor_faults", "process.cpu_ns"))
        read = zip(blocks.cycle, blocks.all_steps(), *columns, strict=False)
        rows += [row for cycle, *row in read if (number, cycle) in chosen]
    if any(faults is None or cpu_ns is None or cpu_ns <= 0 for _, faults, cpu_ns in rows):
        return [], []
    return [faults / steps for steps, faults, _ in rows], [cpu_ns / 1e6 / steps for steps, _, cpu_ns in rows]
