"""Percentiles of steps, of as many as it takes to know them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

PERCENT = 100


def percentile_ns(step_ns: NDArray[np.integer[Any]], percent: int) -> int | None:
    """Return a percentile of step times; null where less than one whole step would lie above it.

    Definition 8 of Hyndman and Fan, "Sample quantiles in statistical packages", Am. Stat. 50 (1996): of few steps the
    usual one lies too low.
    """
    if step_ns.size * (PERCENT - percent) < PERCENT:
        return None
    return round(float(np.percentile(step_ns, percent, method="median_unbiased")))
