"""How precise a cell's step time is, and how many launches a wanted precision takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kit.stats.interval import t_quantile, t_quantiles

# Looking after every launch and stopping when the interval is narrow favours runs whose spread came out too small. The
# 95 % interval then holds the truth 91 to 93 times in 100 from three launches on, 92 to 95 times from five
# (docs/method.md; tests/stats/test_precision.py measures it).
SEQUENTIAL_LAUNCHES_MIN = 5
# A cell that this many launches have not made precise will not be by more of them: its host is too noisy.
SEQUENTIAL_LAUNCHES_MAX = 100


def half_width(medians_ns: Sequence[float]) -> float | None:
    """Of the 95 % interval of the geometric mean, relative: 0.02 is 2 %. Null with fewer than two launches."""
    if len(medians_ns) < 2:  # noqa: PLR2004 - a spread takes two
        return None
    spread = _log_spread(medians_ns)
    return math.expm1(t_quantile(len(medians_ns) - 1) * spread / math.sqrt(len(medians_ns)))


def launches_to_precision(medians_ns: Sequence[float], precision: float) -> int:
    """How many launches in all should bring the half-width below `precision`, if the spread stays as seen.

    At least `SEQUENTIAL_LAUNCHES_MIN` and at most `SEQUENTIAL_LAUNCHES_MAX`, which it also is where fewer than two
    launches show no spread yet.
    """
    if len(medians_ns) < 2:  # noqa: PLR2004
        return SEQUENTIAL_LAUNCHES_MAX
    launches = np.arange(max(SEQUENTIAL_LAUNCHES_MIN, len(medians_ns)), SEQUENTIAL_LAUNCHES_MAX + 1)
    half_widths = t_quantiles(launches - np.float64(1)) * _log_spread(medians_ns) / np.sqrt(launches)
    enough = launches[half_widths <= math.log1p(precision)]
    return int(enough[0]) if enough.size else SEQUENTIAL_LAUNCHES_MAX


def _log_spread(medians_ns: Sequence[float]) -> float:
    return float(np.log(np.asarray(medians_ns, np.float64)).std(ddof=1))
