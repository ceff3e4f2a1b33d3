"""What `kit selftest` found against what it planted.

A planted slow-down is extra work inside the step, stamped by itself: how much was planted is measured, not assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kit.stats.difference import Difference, bounded_exp, over_rounds


class FoundPlanted(NamedTuple):
    """One planted slow-down."""

    found: Difference
    planted_ratio: float  # geometric mean over rounds
    inside: bool  # the planted ratio lies in the interval of the found one


def found_against_planted(found_logs: Sequence[float], planted_logs: Sequence[float]) -> FoundPlanted | None:
    """Compare the rounds' log-ratios with the planted ones; None below two rounds."""
    found = over_rounds(found_logs)
    if found is None:
        return None
    planted_ratio = bounded_exp(float(np.mean(planted_logs)))
    return FoundPlanted(found, planted_ratio, found.low <= planted_ratio <= found.high)
