"""Faster, slower, same or unresolved: what a difference means against the noise of the host.

     slower by more than the band ─┐       b: the host's band, at least 1 %
──────────┼───────┼───────┼────────┴─►  time ratio, candidate / baseline
       1/(1+b)    1      1+b
  ├─┤                                    faster: excludes 1, and the ratio is outside the band
               ├────┤                    same: wholly within 1 %, where b is no more than that
      ├───────────┤                      unresolved: neither; more launches would tell
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kit.stats.difference import Difference
from kit.stats.interval import CONFIDENCE

Verdict = Literal["faster", "slower", "same", "unresolved"]

# Nobody should act on less, whatever the interval says.
NOISE_BAND_MIN = 0.01
# A host with a wider band cannot tell smaller differences apart, which does not make them the same: there the interval
# over launches says nothing of what the host does between them.
SAME_WITHIN = math.log1p(NOISE_BAND_MIN)
# With fewer launches a side, a verdict is a look.
LAUNCHES_FOR_VERDICT = 10
# A spread from two launches is too uncertain to plan from.
LAUNCHES_TO_PLAN = 3
# Beyond this, more launches are not the answer: the difference is at the edge of the band, or the host is too noisy.
LAUNCHES_TO_SETTLE_MAX = 200


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict; when unresolved, about how many launches a side would settle it (null: not known, or too many)."""

    verdict: Verdict
    launches_to_settle: int | None = None


def noise_band(host_band: float | None = None) -> float:
    """Relative difference below which nothing is called faster or slower: 1 %, or the host's A/A band if wider."""
    return max(NOISE_BAND_MIN, host_band or 0.0)


def judge(difference: Difference | None, p_adjusted: float | None = None, band: float = NOISE_BAND_MIN) -> Judgement:
    """Judge one difference.

    Args:
        difference: null when there were too few launches to take one.
        p_adjusted: its p value, adjusted for the other differences in the same table; its own by default.
        band: from `noise_band`.
    """
    return judge_all([difference], [p_adjusted], band)[0]


def judge_all(
    differences: Sequence[Difference | None], p_adjusted: Sequence[float | None], band: float = NOISE_BAND_MIN
) -> list[Judgement]:
    """`judge` of each difference, with the p value in the same place."""
    pairs = list(zip(differences, p_adjusted, strict=True))
    verdicts: list[Verdict] = ["unresolved" if one is None else _verdict(one, p, band) for one, p in pairs]
    unsettled = [(one, p) for (one, p), verdict in zip(pairs, verdicts, strict=True) if verdict == "unresolved" and one]
    needed = iter(_all_launches_to_settle([one for one, _ in unsettled], [p for _, p in unsettled], band))
    return [
        Judgement(verdict, next(needed) if verdict == "unresolved" and one else None)
        for one, verdict in zip(differences, verdicts, strict=True)
    ]


def _verdict(difference: Difference, p_adjusted: float | None, band: float) -> Verdict:
    p = difference.p if p_adjusted is None else p_adjusted
    edge = math.log1p(band)
    centre, low, high = _ln(difference.ratio), _ln(difference.low), _ln(difference.high)
    if band <= NOISE_BAND_MIN and low >= -SAME_WITHIN and high <= SAME_WITHIN:
        return "same"
    if abs(centre) > edge and (low > 0 or high < 0) and p <= 1 - CONFIDENCE:
        return "slower" if centre > 0 else "faster"
    return "unresolved"


def _ln(ratio: float) -> float:
    """Of an end of an interval so wide that its lower one is zero, too."""
    return math.log(ratio) if ratio > 0 else -math.inf


def launches_to_settle(difference: Difference, band: float, p_adjusted: float | None = None) -> int | None:
    """Fewest launches a side that would settle it, if centre and spread stay as observed.

    To be called different, its p must come below what the adjustment for the other rows leaves it, by the factor that
    the adjustment has now; to be called the same, which only a band of 1 % allows, its interval must lie within 1 %.
    The centre may move, so this is even odds, not a promise. At least the number that a verdict needs anyway.

    Args:
        difference: unresolved.
        band: from `noise_band`.
        p_adjusted: as for `judge`; its own p by default.

    Returns:
        Null where it cannot be planned, or would be more than `LAUNCHES_TO_SETTLE_MAX`.
    """
    return _all_launches_to_settle([difference], [p_adjusted], band)[0]


def _all_launches_to_settle(
    differences: Sequence[Difference], p_adjusted: Sequence[float | None], band: float
) -> list[int | None]:
    """`launches_to_settle` of each difference, with the p value in the same place."""
    observed = np.array([one.launches for one in differences], np.int64)
    # What the adjustment leaves of the 5 %; a p of zero, or none, leaves them all.
    left = [one.p / p if p else 1.0 for one, p in zip(differences, p_adjusted, strict=True)]
    edge = np.log1p(band)
    distance = np.abs(np.log([one.ratio for one in differences]))
    apart = distance > edge
    # A host with a wider band cannot call them the same, with however many launches.
    to_be_same = SAME_WITHIN - distance if band <= NOISE_BAND_MIN else np.full(len(differences), -1.0)
    half_width_wanted = np.where(apart, distance, to_be_same)
    alpha = (1 - CONFIDENCE) * np.where(apart, left, 1.0)
    variance = np.array([one.spread.variance for one in differences])
    freedom = np.array([one.spread.degrees_of_freedom for one in differences])

    def settles(launches: NDArray[np.int64]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = _half_width(variance, freedom, launches, alpha) < half_width_wanted
        return found

    # The interval narrows with every launch, so the fewest that settle it are found by halving.
    low = np.maximum(observed + 1, LAUNCHES_FOR_VERDICT)
    high = np.full(len(differences), LAUNCHES_TO_SETTLE_MAX)
    known = (observed >= LAUNCHES_TO_PLAN) & (alpha > 0) & (low <= high) & settles(high)
    while np.any(low < high):
        middle = (low + high) // 2
        settled = settles(middle)
        low, high = np.where(settled, low, middle + 1), np.where(settled, middle, high)
    return [launches if is_known else None for launches, is_known in zip(low.tolist(), known.tolist(), strict=True)]


def _half_width(
    variance: NDArray[np.float64],
    freedom: NDArray[np.float64],
    launches: NDArray[np.int64],
    alpha: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Of the intervals that leave out `alpha`, both sides together."""
    from scipy.special import stdtrit

    widths: NDArray[np.float64] = stdtrit((launches - 1) * freedom, 1 - alpha / 2) * np.sqrt(variance / launches)
    return widths
