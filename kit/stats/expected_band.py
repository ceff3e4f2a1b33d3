"""How far two runs of one cell are to be expected apart, from the launches of a single, longer one.

    levels of launches    x1 x2 x3 …    each resembles the one before by r (AR(1)), spread s
    a run's centre        mean of m neighbours
    two runs              m neighbours and the m that follow

The windows of one run that can be compared with each other share most of their launches: what 95 % of those
comparisons stayed within is left by 14 to 25 % of new ones. This band is left by 4 to 8 % of them, whatever the
resemblance, from 18 launches on (docs/selftest.md; tests/stats/test_expected_band.py measures it).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kit.stats.interval import t_quantile
from kit.stats.launch_summary import lag_1_autocorrelation
from kit.stats.verdict import LAUNCHES_FOR_VERDICT

# Beyond it a few dozen launches show a trend, and no spread around a level.
RESEMBLANCE_MAX = 0.95
# Launches that resemble each other count for fewer. Taken as two, they give bands twice as wide that miss no less.
EFFECTIVE_LAUNCHES_MIN = 3.0


def expected_band(medians_ns: Sequence[float]) -> float:
    """Relative difference that 95 % of comparisons of two runs, `LAUNCHES_FOR_VERDICT` launches each, stay within.

    Args:
        medians_ns: launch medians in the order in which they ran, at least four; some may be missing in between.
    """
    logs = np.log(np.asarray(medians_ns, np.float64))
    resemblance = _resemblance(lag_1_autocorrelation(logs) or 0.0, logs.size)
    # Bayley and Hammersley 1946: so many independent launches have a mean as certain as these.
    effective = max(EFFECTIVE_LAUNCHES_MIN, logs.size * (1 - resemblance) / (1 + resemblance))
    # Launches alike show less than their spread.
    variance = float(logs.var(ddof=1)) / (1 - 1 / effective)
    return math.expm1(t_quantile(effective - 1) * math.sqrt(variance * _variance_of_difference(resemblance)))


def _resemblance(seen: float, launches: int) -> float:
    """Without the bias of a correlation that was taken around the series' own mean (Kendall 1954)."""
    return min(max(seen + (1 + 3 * seen) / launches, 0.0), RESEMBLANCE_MAX)


def _variance_of_difference(resemblance: float) -> float:
    """Of the means of two neighbouring runs, in units of a launch's variance."""
    side = LAUNCHES_FOR_VERDICT
    places = np.arange(2 * side)
    alike = resemblance ** np.abs(places[:, np.newaxis] - places)
    weights = np.repeat((1 / side, -1 / side), side)
    return float(weights @ alike @ weights)
