"""How two groups of launches differ: the ratio of their times, its 95 % interval, and a p value.

All of it on logarithms of launch medians, where a ratio is a difference and noise is nearly symmetric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kit.stats.interval import t_quantile

# One launch a side has no spread, so nothing can be said of the difference.
LAUNCHES_MIN = 2


@dataclass(frozen=True, slots=True)
class Spread:
    """Variance of ln launch medians, as the test used it: per pair when paired, else per side."""

    variances: tuple[float, ...]

    def standard_error(self, launches: int) -> float:
        """Of the difference, with `launches` launches a side."""
        return math.sqrt(sum(self.variances) / launches)

    def degrees_of_freedom(self, launches: int) -> float:
        """Welch-Satterthwaite for equal sides; ``launches - 1`` when paired."""
        squares = sum(variance**2 for variance in self.variances)
        total = sum(self.variances)
        return (launches - 1) * (total**2 / squares if squares > 0 else 1.0)


@dataclass(frozen=True, slots=True)
class Difference:
    """Candidate over baseline. A ratio below 1 means that the candidate takes less time.

    Attributes:
        ratio, low, high: time ratio with its 95 % interval.
        p: two-sided, of no difference.
        launches: a side: pairs when paired, else the smaller side.
        paired: by round within one run, or two independent groups (Welch).
        spread: what more launches would divide.
    """

    ratio: float
    low: float
    high: float
    p: float
    launches: int
    paired: bool
    spread: Spread


def paired_difference(candidate_ns: Mapping[int, float], baseline_ns: Mapping[int, float]) -> Difference | None:
    """Compare launch medians by round, for launches interleaved in one run (paired t test on logarithms).

    Args:
        candidate_ns, baseline_ns: round -> launch median; rounds that only one side has are left out.

    Returns:
        Null with fewer than two common rounds.
    """
    rounds = sorted(candidate_ns.keys() & baseline_ns.keys())
    if len(rounds) < LAUNCHES_MIN:
        return None
    logs = _logs([candidate_ns[r] for r in rounds]) - _logs([baseline_ns[r] for r in rounds])
    spread = Spread((float(logs.var(ddof=1)),))
    launches = len(rounds)
    return _difference(
        float(logs.mean()),
        spread.standard_error(launches),
        spread.degrees_of_freedom(launches),
        launches=launches,
        paired=True,
        spread=spread,
    )


def welch_difference(candidate_ns: Sequence[float], baseline_ns: Sequence[float]) -> Difference | None:
    """Compare launch medians of two runs (Welch's t test on logarithms). Null with fewer than two launches a side."""
    if min(len(candidate_ns), len(baseline_ns)) < LAUNCHES_MIN:
        return None
    candidate, baseline = _logs(candidate_ns), _logs(baseline_ns)
    variances = float(candidate.var(ddof=1)), float(baseline.var(ddof=1))
    of_means = variances[0] / candidate.size, variances[1] / baseline.size
    squares = of_means[0] ** 2 / (candidate.size - 1) + of_means[1] ** 2 / (baseline.size - 1)
    launches = min(candidate.size, baseline.size)
    return _difference(
        float(candidate.mean() - baseline.mean()),
        math.sqrt(sum(of_means)),
        sum(of_means) ** 2 / squares if squares > 0 else launches - 1,
        launches=launches,
        paired=False,
        spread=Spread(variances),
    )


def _logs(values: Sequence[float]) -> NDArray[np.float64]:
    logs: NDArray[np.float64] = np.log(np.asarray(values, np.float64))
    return logs


def _difference(
    centre: float, standard_error: float, degrees_of_freedom: float, *, launches: int, paired: bool, spread: Spread
) -> Difference:
    half = t_quantile(degrees_of_freedom) * standard_error
    return Difference(
        ratio=math.exp(centre),
        low=math.exp(centre - half),
        high=math.exp(centre + half),
        p=_two_sided_p(centre, standard_error, degrees_of_freedom),
        launches=launches,
        paired=paired,
        spread=spread,
    )


def _two_sided_p(centre: float, standard_error: float, degrees_of_freedom: float) -> float:
    if standard_error == 0:  # every launch gave the same median: coarse clock, or a copy of the same launches
        return 1.0 if centre == 0 else 0.0
    from scipy.special import stdtr

    return float(2 * stdtr(degrees_of_freedom, -abs(centre) / standard_error))
