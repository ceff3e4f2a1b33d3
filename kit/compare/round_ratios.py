"""The ratios that a verdict rests on: each row of a group against its baseline, round by round and cycle by cycle."""

from __future__ import annotations

import math
from typing import NamedTuple

from kit.compare.pairs import Pairs
from kit.compare.rows import GroupRows
from kit.compare.within import launches_of, parts_of
from kit.profile.schema import Profile
from kit.stats.verdict import Versus


class RoundRatios(NamedTuple):
    """One row; ratios are of step times: below 1 it is faster than the baseline."""

    name: str
    versus: Versus  # of the whole run
    by_round: dict[int, float]
    by_cycle: dict[int, list[float]]  # of each round, in order of cycle; none where members ran one after another


def round_ratios(profile: Profile, group: GroupRows) -> list[RoundRatios]:
    """Return them of every row of a group that has a common round with the baseline, in the group's order."""
    base = next((row.cell.key for row in group.rows if row.is_baseline), None)
    if base is None:
        return []
    cells = {result.key: result.cell for result in profile.cells}
    pairs = Pairs(parts_of(profile, group.key), cells, launches_of(profile, group.key))
    ratios = []
    for row in group.rows:
        if row.versus is None:
            continue
        pair = row.cell.key, base
        by_round = {number: math.exp(log) for number, log in pairs.log_ratios(*pair).items()}
        by_cycle = {number: [math.exp(log) for log in logs] for number, logs in pairs.cycle_ratios(*pair).items()}
        if by_round:
            ratios.append(RoundRatios(row.name, row.versus, by_round, by_cycle))
    return ratios
