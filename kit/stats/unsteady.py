"""Why a launch has no steady state, in words with the numbers that decided it.

Differences of levels are of the higher one over the lower, whichever comes first: 10 % faster undoes 10 % slower.
"""

from __future__ import annotations

import math

# From twice on, a percentage is harder to read than a factor.
FACTOR_FROM = 2.0
# Digits that two numbers are given, until they differ as what they stand for does.
DIGITS = (3, 5, 8)


def too_few(steps: int, needed: int) -> str:
    """Of all `steps`, step 0 included."""
    return f"too few steps to see a change of level: {steps} of {needed}"


def scattered(sigma: float) -> str:
    """Args: sigma: standard deviation of the logarithms."""
    return f"its steps scatter by {difference(sigma)}, which is no level"


def wandering(width: float, allowed: float, change: float, between: tuple[int, int], steps: int) -> str:
    """Why a last half that has several levels is not steady.

    Args:
        width: between its lowest and its highest level, in logarithms.
        allowed: the most that would have been one level, in logarithms.
        change: the largest from one of its levels to the next, in logarithms.
        between: the steps at which the one level ends and the next begins: equal unless a burst lies between.
        steps: of the launch.
    """
    digits = next((n for n in DIGITS if difference(width, n) != difference(allowed, n)), DIGITS[-1])
    left, reached = between
    place = f"at step {reached}" if left == reached else f"between steps {left} and {reached}"
    return (
        f"its last half has levels {difference(width, digits)} apart, and {difference(allowed, digits)} is allowed; "
        f"the largest change is {difference(change)} {'slower' if change > 0 else 'faster'}, {place} of {steps}"
    )


def difference(log_ratio: float, digits: int = DIGITS[0]) -> str:
    """ "12.3 %" or "2.04 times", of the larger over the smaller."""
    ratio = math.exp(abs(log_ratio))
    if ratio >= FACTOR_FROM:
        return f"{ratio:,.0f} times" if ratio >= 10**digits else f"{ratio:.{digits}g} times"
    return f"{100 * (ratio - 1):.{digits}g} %"
