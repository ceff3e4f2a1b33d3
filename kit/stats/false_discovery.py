"""Benjamini-Hochberg: p values adjusted for the number of questions that one table asks.

Written out (scipy.stats.false_discovery_control gives the same numbers, and is checked against in the tests) because
importing scipy.stats would cost `kit compare` more than everything else it does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def adjusted_p(p_values: Sequence[float]) -> list[float]:
    """Adjust for the false discovery rate (Benjamini and Hochberg 1995), in the order given."""
    if not p_values:
        return []
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    scaled = p[order] * p.size / np.arange(1, p.size + 1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return [float(value) for value in adjusted]
