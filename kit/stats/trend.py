"""Whether a member was still warming up while it was measured: its ratio to the others moves from early to late cycles.

The machine's drift is in all members of a cycle and cancels; what moves in every round alike is the member's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kit.stats.difference import Difference, over_rounds
from kit.stats.verdict import ALPHA, ROUNDS_FOR_VERDICT, SMALLEST_DIFFERENCE, adjusted_p

# A third is then two cycles.
CYCLES_LEAST = 6


def trending(
    members: Sequence[Sequence[NDArray[np.float64]]], smallest: float = SMALLEST_DIFFERENCE
) -> list[Difference | None]:
    """Return the trend of each member of a group; None where there is none beyond `smallest`, or too little to say.

    A trend is the member's ratio to the others in the last third of the cycles, over that in the first third.

    Args:
        members: of each the log-ratios to the others in each round, (cycles,), in order of cycle. They are one family:
            p values are adjusted, so that a group of many members does not raise more false alarms than one of two.
        smallest: relative difference that matters.
    """
    changes = [_change(log_ratios_by_round) for log_ratios_by_round in members]
    p_values = iter(adjusted_p([change.p() for change in changes if change is not None]))
    trends: list[Difference | None] = []
    for change in changes:
        moves = change is not None and next(p_values) <= ALPHA and abs(change.mean_log) > math.log1p(smallest)
        trends.append(change if moves else None)
    return trends


def _change(log_ratios_by_round: Sequence[NDArray[np.float64]]) -> Difference | None:
    """Return by how much the last third of the cycles differs from the first; None of too few rounds."""
    changes = []
    for logs in log_ratios_by_round:
        third = len(logs) // 3
        if len(logs) >= CYCLES_LEAST:
            changes.append(float(np.median(logs[-third:]) - np.median(logs[:third])))
    return over_rounds(changes) if len(changes) >= ROUNDS_FOR_VERDICT else None
