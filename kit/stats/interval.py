"""95 % intervals over launches. Each value is one launch's own summary: the launch is the unit, never the step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kit.profile.schema import Estimate

CONFIDENCE = 0.95


def t_quantile(degrees_of_freedom: float) -> float:
    """Half width of the two-sided 95 % interval of Student's t, in standard errors."""
    return float(t_quantiles(np.asarray(degrees_of_freedom, np.float64)))


def t_quantiles(degrees_of_freedom: NDArray[np.float64]) -> NDArray[np.float64]:
    """`t_quantile` of each."""
    # scipy.special, not scipy.stats: the same numbers at under half the import time (see docs/method.md).
    from scipy.special import stdtrit

    return np.asarray(stdtrit(degrees_of_freedom, 0.5 + CONFIDENCE / 2), np.float64)


def geometric_estimate(values: Sequence[float]) -> Estimate | None:
    """Geometric mean with the exponentiated t-interval of the logarithms: for times and rates, all above zero.

    Returns null for no values; one value has no interval.
    """
    if not values:
        return None
    centre, half = _mean_and_half_width(np.log(np.asarray(values, np.float64)))
    if half is None:
        return Estimate(value=math.exp(centre), low=None, high=None, launches=1)
    return Estimate(
        value=math.exp(centre), low=math.exp(centre - half), high=math.exp(centre + half), launches=len(values)
    )


def mean_estimate(values: Sequence[float]) -> Estimate | None:
    """Arithmetic mean with its t-interval: for percentages and scores, which may be zero."""
    if not values:
        return None
    centre, half = _mean_and_half_width(np.asarray(values, np.float64))
    if half is None:
        return Estimate(value=centre, low=None, high=None, launches=1)
    return Estimate(value=centre, low=centre - half, high=centre + half, launches=len(values))


def inverse(estimate: Estimate | None, numerator: float) -> Estimate | None:
    """``numerator / estimate`` with its interval: a rate from a time."""
    if estimate is None:
        return None
    low = None if estimate.high is None else numerator / estimate.high
    high = None if estimate.low is None else numerator / estimate.low
    return Estimate(value=numerator / estimate.value, low=low, high=high, launches=estimate.launches)


def scaled(estimate: Estimate | None, factor: float) -> Estimate | None:
    """``factor * estimate`` with its interval, for a positive factor."""
    if estimate is None:
        return None
    low = None if estimate.low is None else factor * estimate.low
    high = None if estimate.high is None else factor * estimate.high
    return Estimate(value=factor * estimate.value, low=low, high=high, launches=estimate.launches)


def _mean_and_half_width(values: NDArray[np.float64]) -> tuple[float, float | None]:
    mean = float(values.mean())
    if values.size == 1:
        return mean, None
    return mean, t_quantile(values.size - 1) * float(values.std(ddof=1)) / math.sqrt(values.size)
