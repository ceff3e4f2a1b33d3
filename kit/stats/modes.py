"""Whether a member runs in two modes, now in one, now in the other: then a mean describes neither.

                 ▂█▅               ▃█▂
                ▂███▁   valley    ▁███▁       fires: two levels far apart, each narrow, next to nothing between them
    ln step  ───┴─┴───────────────┴─┴────
               fast               slow        drift, noise and outliers fill the valley or have no second level

The rule: split the values in two where the squares within are least (Otsu 1979, 10.1109/TSMC.1979.4310076), take the
median of each part as its level, and ask whether the levels lie far apart, absolutely and in units of their spread,
whether each has its share of the blocks, and whether the middle of the gap is empty. Rates are in the tests.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Modes that are 25 % apart and noisy are found to be a little less apart at times.
GAP_LEAST_RELATIVE = math.log(1.2)
# Of values that are not relative to others in the same cycle: shared machines drift by up to 60 %, which looks alike.
GAP_LEAST_PLAIN = math.log(1.6)
# The larger of both levels' robust spreads, four times: two halves of a normal distribution are 2.3 spreads apart,
# those of a uniform one 2.7.
GAP_LEAST_SPREADS = 4.0
# Rarer blocks are outliers; a few are luck.
SHARE_LEAST = 0.1
BLOCKS_LEAST = 4
# Middle half of the gap. A random walk from one level to the other passes through it.
VALLEY_SHARE_MAX = 0.08
# Of what the cause's largest tenth begins at.
MUCH_SHARE = 0.5
NEXT_TO_NONE_SHARE = 0.05
MAD_TO_SD = 1.4826  # of a normal distribution


class TwoModes(NamedTuple):
    """Two levels, in the units of the values given."""

    fast_log: float
    slow_log: float
    slow: NDArray[np.bool_]  # (blocks,): in the slow mode


def two_modes(
    log_values: NDArray[np.float64],
    *,
    own_log: NDArray[np.float64] | None = None,
    gap_least: float = GAP_LEAST_RELATIVE,
) -> TwoModes | None:
    """Return the two modes of a member's blocks, or None where one level or drift explains them.

    Args:
        log_values: (blocks,) of all rounds: ln of the member's step relative to the others of the cycle, in which the
            machine's drift cancels. Where there are no others its own ln step, and then `GAP_LEAST_PLAIN`.
        own_log: (blocks,) its own ln step, with relative values: they have two levels, too, where one of the others
            has the modes. The member's own are its if its own step follows them by half and more.
        gap_least: between the levels, as a logarithm.
    """
    values = np.asarray(log_values, np.float64)
    least = max(BLOCKS_LEAST, math.ceil(SHARE_LEAST * values.size))
    if values.size < 2 * least or not np.all(np.isfinite(values)):
        return None
    fast_log, slow_log = _levels(values, values > _best_split(values, least))
    slow = values > (fast_log + slow_log) / 2
    if min(slow.sum(), (~slow).sum()) < least:
        return None
    fast_log, slow_log = _levels(values, slow)
    gap = slow_log - fast_log
    spread = MAD_TO_SD * max(
        float(np.median(np.abs(values[~slow] - fast_log))), float(np.median(np.abs(values[slow] - slow_log)))
    )
    valley = np.mean((values > fast_log + gap / 4) & (values < slow_log - gap / 4))
    if gap < max(gap_least, GAP_LEAST_SPREADS * spread) or valley > VALLEY_SHARE_MAX:
        return None
    if own_log is not None:
        own_fast, own_slow = _levels(np.asarray(own_log, np.float64), slow)
        if own_slow - own_fast < gap / 2:
            return None
    return TwoModes(fast_log, slow_log, slow)


def modes_by_cause(log_values: NDArray[np.float64], cause: NDArray[np.float64]) -> TwoModes | None:
    """Return the modes that a counter parts: next to none of it in one, much in the other, and a longer step with it.

    Blocks in which the mode changed lie between both and count for neither level.

    Args:
        log_values: (blocks,) as for `two_modes`.
        cause: (blocks,) of the counter per step, such as page faults; finite.
    """
    much = float(np.quantile(cause, 1 - SHARE_LEAST))
    slow, fast = cause > MUCH_SHARE * much, cause < NEXT_TO_NONE_SHARE * much
    least = max(BLOCKS_LEAST, math.ceil(SHARE_LEAST * cause.size))
    if min(slow.sum(), fast.sum()) < least:
        return None
    fast_log, slow_log = float(np.median(log_values[fast])), float(np.median(log_values[slow]))
    if slow_log - fast_log < GAP_LEAST_RELATIVE:
        return None
    return TwoModes(fast_log, slow_log, slow)


def _best_split(values: NDArray[np.float64], least: int) -> float:
    """Return the largest value of the lower part of the best split, with at least `least` values in either part."""
    ordered = np.sort(values)
    below = np.arange(least, values.size - least + 1)
    sums = np.cumsum(ordered)
    means_below = sums[below - 1] / below
    means_above = (sums[-1] - sums[below - 1]) / (values.size - below)
    between = below * (values.size - below) * (means_above - means_below) ** 2
    return float(ordered[below[np.argmax(between)] - 1])


def _levels(values: NDArray[np.float64], slow: NDArray[np.bool_]) -> tuple[float, float]:
    if not slow.any() or slow.all():  # ties: every value is the same
        level = float(np.median(values))
        return level, level
    return float(np.median(values[~slow])), float(np.median(values[slow]))
