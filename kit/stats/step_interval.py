"""How well a cell's own step is known: Student's t over rounds on the logarithm of the round's step.

A ratio of two members of a round is free of what slowed both. A lone step is not: its interval holds the machine's
drift during the run, and says nothing of the machine's other days.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from kit.stats.difference import over_rounds


def level_interval(steps_by_round: Iterable[Sequence[float]], level: float = 0.95) -> tuple[float, float] | None:
    """Return both ends of the interval of the geometric mean over rounds, or None below two rounds.

    Args:
        steps_by_round: of each round the steps of its launches, above zero, in any unit. Launches of one round shared
            the machine's state: their geometric mean is one observation.
        level: of confidence.
    """
    level_difference = over_rounds([fmean(map(math.log, steps)) for steps in steps_by_round], level)
    return None if level_difference is None else (level_difference.low, level_difference.high)
