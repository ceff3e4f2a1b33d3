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
from kit.stats.interval import CONFIDENCE, t_quantile

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
    return Judgement("unresolved", launches_to_settle(difference, band))


def launches_to_settle(difference: Difference, band: float) -> int | None:
    """Fewest launches a side whose interval would settle it, if centre and spread stay as observed.

    The centre may move, so this is even odds, not a promise. At least the number that a verdict needs anyway.
    """
    if difference.launches < LAUNCHES_TO_PLAN:
        return None
    edge, distance = math.log1p(band), abs(math.log(difference.ratio))
    half_width_wanted = distance if distance > edge else edge - distance
    first = max(difference.launches + 1, LAUNCHES_FOR_VERDICT)
    for launches in range(first, LAUNCHES_TO_SETTLE_MAX + 1):
        if _half_width(difference.spread, launches) < half_width_wanted:
            return launches
    return None


def _half_width(spread: Spread, launches: int) -> float:
    return t_quantile(spread.degrees_of_freedom(launches)) * spread.standard_error(launches)
