"""Whether a member was still warming up while it was measured: its ratio to the others moves from early to late cycles.

The machine's drift is in all members of a cycle and cancels; what moves in every round alike is the member's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.stats.difference import over_rounds
from kit.stats.verdict import ALPHA, ROUNDS_FOR_VERDICT, SMALLEST_DIFFERENCE

# A third is then two cycles.
CYCLES_LEAST = 6


class Trend(NamedTuple):
    """The member's ratio to the others in the last third of the cycles, over that in the first third."""

    ratio: float
    low: float  # 95 % interval over rounds
    high: float
    rounds: int


def trending(log_ratios_by_round: Sequence[NDArray[np.float64]], smallest: float = SMALLEST_DIFFERENCE) -> Trend | None:
    """Return the trend, or None where there is none beyond `smallest`, or too few rounds or cycles to say.

    Args:
        log_ratios_by_round: for each round the member's log-ratio to the others, (cycles,), in order of cycle.
        smallest: relative difference that matters.
    """
    changes = []
    for logs in log_ratios_by_round:
        third = len(logs) // 3
        if len(logs) >= CYCLES_LEAST:
            changes.append(float(np.median(logs[-third:]) - np.median(logs[:third])))
    change = over_rounds(changes) if len(changes) >= ROUNDS_FOR_VERDICT else None
    if change is None or change.p > ALPHA or abs(change.mean_log) <= math.log1p(smallest):
        return None
    return Trend(change.ratio, change.low, change.high, change.rounds)
