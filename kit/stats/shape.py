"""What a mean does not say of a cell: that it has two modes or was still warming up, and its slowest steps.

                 ▂█▅               ▃█▂
                ▂███▁   valley    ▁███▁       two modes: two levels far apart, each narrow, hardly anything in between
    ln step  ───┴─┴───────────────┴─┴────
               fast               slow        drift, noise and outliers fill the valley or have no second level

The rule splits the values in two where the squares within are least (Otsu 1979, 10.1109/TSMC.1979.4310076), takes the
median of each part as its level, and asks whether the levels lie far apart, absolutely and in units of their spread,
whether each has enough of the blocks, and whether the middle of the gap is empty. Rates are in the tests.

A trend is a cell's ratio to the others that moves from early to late cycles. The machine's drift is in all cells of a
cycle and cancels; what moves in every round alike is the cell's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.stats.estimate import ALPHA, ROUNDS_FOR_VERDICT, SMALLEST_DIFFERENCE, Estimate, adjusted_p, estimate, over

# Modes that are 25 % apart and noisy are found to be a little less apart at times.
GAP_LEAST_RELATIVE = math.log(1.2)
# For values that are not relative to others in the same cycle: shared machines drift by up to 60 %, which looks alike.
GAP_LEAST_PLAIN = math.log(1.6)
# The larger of both levels' robust spreads, four times: two halves of a normal distribution are 2.3 spreads apart,
# those of a uniform one 2.7.
GAP_LEAST_SPREADS = 4.0
# Rarer blocks are outliers; a few are luck.
FRACTION_LEAST, BLOCKS_LEAST = 0.1, 4
# Middle half of the gap. A random walk from one level to the other passes through it.
VALLEY_MAX = 0.08
# Fractions of the count that the cause's largest tenth begins at.
MUCH, NEXT_TO_NONE = 0.5, 0.05
MAD_TO_SD = 1.4826  # of a normal distribution
# A third is then two cycles.
CYCLES_LEAST = 6
PERCENT = 100

Floats = NDArray[np.float64]


class TwoModes(NamedTuple):
    """Two levels, in the units of the values given."""

    fast_log: float
    slow_log: float
    slow: NDArray[np.bool_]  # (blocks,): in the slow mode


def two_modes(
    log_values: Floats, *, own_log: Floats | None = None, gap_least: float = GAP_LEAST_RELATIVE
) -> TwoModes | None:
    """Return the two modes of a cell's blocks, or None where one level or drift explains them.

    Args:
        log_values: (blocks,) of all rounds: ln of the cell's step relative to the others of the cycle, in which the
            machine's drift cancels. Where there are no others its own ln step, and then `GAP_LEAST_PLAIN`.
        own_log: (blocks,) its own ln step, with relative values: they have two levels, too, where one of the others
            has the modes. The modes are the cell's if its own step follows them by half and more.
        gap_least: between the levels, as a logarithm.
    """
    values = np.asarray(log_values, np.float64)
    least = max(BLOCKS_LEAST, math.ceil(FRACTION_LEAST * values.size))
    if values.size < 2 * least or not np.all(np.isfinite(values)):
        return None
    ordered = np.sort(values)
    if ordered[-1] - ordered[0] < gap_least:
        return None
    below = np.arange(least, values.size - least + 1)
    sums = np.cumsum(ordered)
    means_below, means_above = sums[below - 1] / below, (sums[-1] - sums[below - 1]) / (values.size - below)
    between = below * (values.size - below) * (means_above - means_below) ** 2
    fast_log, slow_log = _levels(values, values > float(ordered[below[np.argmax(between)] - 1]))
    slow = values > (fast_log + slow_log) / 2
    if min(slow.sum(), (~slow).sum()) < least:
        return None
    fast_log, slow_log = _levels(values, slow)
    gap = slow_log - fast_log
    spread = MAD_TO_SD * max(
        float(np.median(np.abs(values[~slow] - fast_log))), float(np.median(np.abs(values[slow] - slow_log)))
    )
    valley = np.mean((values > fast_log + gap / 4) & (values < slow_log - gap / 4))
    if gap < max(gap_least, GAP_LEAST_SPREADS * spread) or valley > VALLEY_MAX:
        return None
    if own_log is not None:
        own_fast, own_slow = _levels(np.asarray(own_log, np.float64), slow)
        if own_slow - own_fast < gap / 2:
            return None
    return TwoModes(fast_log, slow_log, slow)


def modes_by_cause(log_values: Floats, cause: Floats) -> TwoModes | None:
    """Return the modes that a counter parts: next to none of it in one, much in the other, and a longer step with it.

    Blocks in which the mode changed lie between both and count for neither level.

    Args:
        log_values: (blocks,) as for `two_modes`.
        cause: (blocks,) of the counter per step, such as page faults; finite.
    """
    much = float(np.quantile(cause, 1 - FRACTION_LEAST))
    slow, fast = cause > MUCH * much, cause < NEXT_TO_NONE * much
    if min(slow.sum(), fast.sum()) < max(BLOCKS_LEAST, math.ceil(FRACTION_LEAST * cause.size)):
        return None
    fast_log, slow_log = float(np.median(log_values[fast])), float(np.median(log_values[slow]))
    return None if slow_log - fast_log < GAP_LEAST_RELATIVE else TwoModes(fast_log, slow_log, slow)


def slower_in_both(modes: Sequence[Sequence[Sequence[float]]], comparisons: int = 1) -> bool:
    """Return whether a ratio of times is shown to be above 1 in each of two modes.

    A round's cycles share the luck of its processes, so the median of a mode's cycles in a round is one observation.
    Both modes share one variance between rounds: a mode that is seen in two rounds does not show its own.

    Args:
        modes: of each mode, the log-ratios of its cycles by round.
        comparisons: pairs that are tested together. The level is split over them and over both modes (Bonferroni).
    """
    rounds = [np.asarray([np.median(logs) for logs in mode]) for mode in modes]
    df = sum(logs.size - 1.0 for logs in rounds)
    if df < ROUNDS_FOR_VERDICT - 1:
        return False
    variance = sum(float(np.square(logs - logs.mean()).sum()) for logs in rounds) / df
    level = 1 - ALPHA / (len(rounds) * max(1, comparisons))
    means = (estimate(float(logs.mean()), math.sqrt(variance / logs.size), df) for logs in rounds)
    return all(mean.log_interval(level)[0] > 0 for mean in means)


def _levels(values: Floats, slow: NDArray[np.bool_]) -> tuple[float, float]:
    if not slow.any() or slow.all():  # ties: every value is the same
        level = float(np.median(values))
        return level, level
    return float(np.median(values[~slow])), float(np.median(values[slow]))


def trending(cells: Sequence[Sequence[Floats]], smallest: float = SMALLEST_DIFFERENCE) -> list[Estimate | None]:
    """Return the trend of each cell of a group; None where there is none beyond `smallest`, or too little to say.

    A trend is the cell's ratio to the others in the last third of the cycles, over that in the first third.

    Args:
        cells: of each the log-ratios to the others in each round, (cycles,), in order of cycle. They are one family:
            p values are adjusted, so that a group of many cells does not raise more false alarms than one of two.
        smallest: relative difference that matters.
    """
    changes = []
    for log_ratios_by_round in cells:
        rounds = [logs for logs in log_ratios_by_round if len(logs) >= CYCLES_LEAST]
        changes.append(
            over([float(np.median(logs[-(len(logs) // 3) :]) - np.median(logs[: len(logs) // 3])) for logs in rounds])
        )
    tested = [change.count >= ROUNDS_FOR_VERDICT for change in changes]
    p_values = iter(adjusted_p([change.p() for change, is_tested in zip(changes, tested, strict=True) if is_tested]))
    return [
        change if is_tested and next(p_values) <= ALPHA and abs(change.mean_log) > math.log1p(smallest) else None
        for change, is_tested in zip(changes, tested, strict=True)
    ]


def percentile_ns(step_ns: NDArray[np.integer[Any]], percent: int) -> int | None:
    """Return a percentile of step times; null where less than one whole step would lie above it.

    Definition 8 of Hyndman and Fan, "Sample quantiles in statistical packages", Am. Stat. 50 (1996): of few steps the
    usual one lies too low.
    """
    if step_ns.size * (PERCENT - percent) < PERCENT:
        return None
    return round(float(np.percentile(step_ns, percent, method="median_unbiased")))
