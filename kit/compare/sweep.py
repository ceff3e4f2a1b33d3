"""What a sweep recommends, and when a compile mode has paid for its compilation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kit.audit.launch_arrays import block_arrays
from kit.compare.cell_numbers import compile_first_ns
from kit.compare.rows import Recommendation, Row
from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.stats.break_even import BreakEven
from kit.stats.break_even import break_even as over_rounds
from kit.stats.rounds import launch_time_ns
from kit.stats.verdict import Versus

# Axes on which less is cheaper: memory and latency grow with the batch, threads are taken from others.
CHEAPER_WHEN_SMALLER = ("batch", "threads")
# Nobody pays more for the last twentieth of a throughput.
WITHIN_5_PCT = 1.05


def swept_axis(cells: Sequence[Cell], compared: Sequence[str]) -> str | None:
    """Return the one axis with sizes that these cells differ in; None where they differ in others."""
    varying = [axis for axis in compared if len({cell.value(axis) for cell in cells}) > 1]
    if len(varying) != 1 or varying[0] in ("backend", "workload", "variant", "compile_mode", "precision", "task"):
        return None
    return varying[0] if all(isinstance(cell.value(varying[0]), int) for cell in cells) else None


def recommendation(axis: str, rows: Sequence[Row], against: Mapping[str, Versus]) -> Recommendation | None:
    """Return the point of best throughput, and the smallest that nearly has it; null if it is shown to beat no other.

    Args:
        axis: of CHEAPER_WHEN_SMALLER; of others nothing is recommended.
        rows: with numbers, in the axis' order.
        against: name of each other row -> what the rounds say of it against the best.
    """
    if axis not in CHEAPER_WHEN_SMALLER or not any(versus.verdict == "slower" for versus in against.values()):
        return None
    best = next(row for row in rows if row.name not in against)
    smallest = next(row for row in rows if row is best or (against[row.name].high or np.inf) <= WITHIN_5_PCT)
    versus = against.get(smallest.name)
    # That none is smaller has to be shown, too.
    smaller = rows[: rows.index(best)] if smallest is best else []
    is_shown = all((against[row.name].low or 0) > WITHIN_5_PCT for row in smaller)
    return Recommendation(
        best=best.name,
        samples_per_s=best.numbers.samples_per_s,
        unresolved=[name for name, versus in against.items() if versus.verdict == "unresolved"],
        smallest=smallest.name if is_shown else None,
        ratio=None if versus is None else versus.ratio,
        low=None if versus is None else versus.low,
        high=None if versus is None else versus.high,
    )


def break_even(launches: Sequence[Launch], baseline: Sequence[Launch]) -> BreakEven | None:
    """Return after how many steps the one that compiles for longer has paid for it."""
    # By part, too: where a group was split its baseline ran in a process of each.
    by_place, base_by_place = (
        {(launch.group, launch.round): launch for launch in of_cell if launch.gave_number}
        for of_cell in (launches, baseline)
    )
    pairs = [(by_place[place], base_by_place[place]) for place in sorted(by_place.keys() & base_by_place.keys())]
    extra_ns = [compile_first_ns(mine) - compile_first_ns(yours) for mine, yours in pairs]
    saving_ns = [_step_ns(yours) - _step_ns(mine) for mine, yours in pairs]
    return over_rounds(extra_ns, saving_ns)


def _step_ns(launch: Launch) -> float:
    return launch_time_ns(block_arrays(launch))
