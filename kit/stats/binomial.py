"""How sure a count is: the interval of a share."""

from __future__ import annotations

from kit.stats.interval import CONFIDENCE


def share_interval(count: int, of: int) -> tuple[float, float]:
    """95 % interval of the share that `count` of `of` independent draws estimates (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv

    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(count, of - count + 1, tail)) if count > 0 else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    return low, high
