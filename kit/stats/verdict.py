"""Faster, slower, same or unresolved: what a difference means against the noise of the host.

     slower by more than the band ─┐
──────────┼───────┼───────┼────────┴─►  time ratio, candidate / baseline
       1/(1+b)    1      1+b
  ├─┤                                    faster: excludes 1, and the ratio is outside the band
               ├────┤                    same: wholly inside the band
      ├───────────┤                      unresolved: neither; more launches would tell
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from kit.stats.difference import Difference, Spread
from kit.stats.interval import CONFIDENCE

Verdict = Literal["faster", "slower", "same", "unresolved"]

# Nobody should act on less, whatever the interval says.
NOISE_BAND_MIN = 0.01
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
    if difference is None:
        return Judgement("unresolved")
    p = difference.p if p_adjusted is None else p_adjusted
    edge = math.log1p(band)
    centre, low, high = math.log(difference.ratio), math.log(difference.low), math.log(difference.high)
    if -edge <= low and high <= edge:
        return Judgement("same")
    if abs(centre) > edge and (low > 0 or high < 0) and p <= 1 - CONFIDENCE:
        return Judgement("slower" if centre > 0 else "faster")
    return Judgement("unresolved", launches_to_settle(difference, band, p))


def launches_to_settle(difference: Difference, band: float, p_adjusted: float | None = None) -> int | None:
    """Fewest launches a side that would settle it, if centre and spread stay as observed.

    To be called different, its p must come below what the adjustment for the other rows leaves it, by the factor that
    the adjustment has now; to be called the same, its interval must lie in the band. The centre may move, so this is
    even odds, not a promise. At least the number that a verdict needs anyway.

    Args:
        difference: unresolved.
        band: from `noise_band`.
        p_adjusted: as for `judge`; its own p by default.
    """
    if difference.launches < LAUNCHES_TO_PLAN:
        return None
    edge, distance = math.log1p(band), abs(math.log(difference.ratio))
    alpha = 1 - CONFIDENCE
    if distance > edge:
        half_width_wanted = distance
        alpha *= difference.p / p_adjusted if p_adjusted else 1.0
    else:
        half_width_wanted = edge - distance
    if alpha <= 0:
        return None
    first = max(difference.launches + 1, LAUNCHES_FOR_VERDICT)
    for launches in range(first, LAUNCHES_TO_SETTLE_MAX + 1):
        if _half_width(difference.spread, launches, alpha) < half_width_wanted:
            return launches
    return None


def _half_width(spread: Spread, launches: int, alpha: float) -> float:
    """Of the interval that leaves out `alpha`, both sides together."""
    from scipy.special import stdtrit

    return float(stdtrit(spread.degrees_of_freedom(launches), 1 - alpha / 2)) * spread.standard_error(launches)
