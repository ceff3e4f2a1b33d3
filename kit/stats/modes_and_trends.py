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

A step changes within a launch if nearly all launches agree that it does. Of few blocks each shows it from its first to
its last third, too; so it is found whatever the number of cycles.

    ln step      ▗▞ ▗▞                 ▗▞
              ▗▞ ▘  ▘      ▗▞ ▗▞ ▗▞ ▗▞ ▘      a launch of 6 blocks, one of them disturbed in the middle
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain, combinations, compress
from operator import not_
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple

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
# Of a trend's first and last third. Its p is computed over rounds, so that few cycles raise no more false alarms.
CYCLES_OF_TREND_LEAST = 3
# Of a step within a launch. Less is common: processors warm up, and a program's memory is laid out as it runs.
CHANGE_LEAST = math.log(1.1)
# A change is so many times what blocks lie beside it. False alarms in 2,000 runs each of blocks whose noise is white,
# has heavy tails, is autoregressive, wanders, or is 1.2 to 10 times slower in a fifth of them, with an SD of 1 to 10 %:
# of 3 launches with 2 blocks at most 2.0 %, of 4 with 2 at most 0.8 %, of 3 or 4 with 6 or 12 at most 0.1 %, of 8 none.
# Three times would give up to 5.3 %. The test repeats some of them.
CHANGE_LEAST_SPREADS = 5.0
# A launch that disagrees may be disturbed. Three launches of many blocks agree all, as one is too large a part.
LAUNCHES_FOR_EXCEPTION = 4
# Middles of the first and the last third of a block lie two thirds of it apart.
BETWEEN_THIRDS = 2 / 3
# So many give 31,000 slopes; all pairs of thousands of blocks, in each of many launches, take minutes.
SLOPE_VALUES_MAX = 250
PERCENT = 100

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TwoModes(NamedTuple):
    """Two levels, in the units of the values given."""

    fast_log: float
    slow_log: float
    slow: list[bool]  # of each block: it is in the slow mode


def two_modes(
    log_values: Sequence[float], *, own_log: Sequence[float] | None = None, gap_least: float = GAP_LEAST_RELATIVE
) -> TwoModes | None:
    """Return the two modes of a cell's blocks, or None where one level or drift explains them.

    Args:
        log_values: of the blocks of all rounds: ln of the cell's step relative to the others of the cycle, in which the
            machine's drift cancels. Where there are no others its own ln step, and then `GAP_LEAST_PLAIN`.
        own_log: its own ln step, of the same blocks, with relative values: they have two levels, too, where one of the
            others has the modes. The modes are the cell's if its own step follows them by half and more.
        gap_least: between the levels, as a logarithm.
    """
    values, count = [*map(float, log_values)], len(log_values)
    least = max(BLOCKS_LEAST, math.ceil(FRACTION_LEAST * count))
    if count < 2 * least or not all(map(math.isfinite, values)) or max(values) - min(values) < gap_least:
        return None
    ordered = sorted(values)
    sums = list(accumulate(ordered))

    def between(below: int) -> float:
        """Return the squares between the `below` smallest values and the others."""
        mean_below, mean_above = sums[below - 1] / below, (sums[-1] - sums[below - 1]) / (count - below)
        return below * (count - below) * (mean_above - mean_below) ** 2

    split = ordered[max(range(least, count - least + 1), key=between) - 1]
    fast_log, slow_log = levels(values, [value > split for value in values])
    slow = [value > (fast_log + slow_log) / 2 for value in values]
    if not least <= sum(slow) <= count - least:
        return None
    fast_log, slow_log = levels(values, slow)
    gap = slow_log - fast_log
    distances = [abs(value - (slow_log if is_slow else fast_log)) for value, is_slow in zip(values, slow, strict=True)]
    spread = MAD_TO_SD * max(levels(distances, slow))
    in_valley = bisect_left(ordered, slow_log - gap / 4) - bisect_right(ordered, fast_log + gap / 4)
    if gap < max(gap_least, GAP_LEAST_SPREADS * spread) or in_valley > VALLEY_MAX * count:
        return None
    if own_log is not None:
        own_fast, own_slow = levels(own_log, slow)
        if own_slow - own_fast < gap / 2:
            return None
    return TwoModes(fast_log, slow_log, slow)


def modes_by_cause(log_values: Sequence[float], cause: Sequence[float]) -> TwoModes | None:
    """Return the modes that a counter parts: next to none of it in one, much in the other, and a longer step with it.

    Blocks in which the mode changed lie between both and count for neither level.

    Args:
        log_values: of the blocks, as for `two_modes`.
        cause: of the same blocks: the counter per step, such as page faults; finite.
    """
    much = quantile(cause, 1 - FRACTION_LEAST)
    slow, fast = [value > MUCH * much for value in cause], [value < NEXT_TO_NONE * much for value in cause]
    if min(sum(slow), sum(fast)) < max(BLOCKS_LEAST, math.ceil(FRACTION_LEAST * len(cause))):
        return None
    fast_log, slow_log = median(compress(log_values, fast)), median(compress(log_values, slow))
    return None if slow_log - fast_log < GAP_LEAST_RELATIVE else TwoModes(fast_log, slow_log, slow)


def quantile(values: Sequence[float], fraction: float) -> float:
    """Return the value below which a fraction of the values lies, between the two nearest by straight line."""
    ordered = sorted(values)
    below, rest = divmod(fraction * (len(ordered) - 1), 1)
    low, high = ordered[int(below)], ordered[min(int(below) + 1, len(ordered) - 1)]
    return low + rest * (high - low)


def slower_in_both(modes: Sequence[Sequence[Sequence[float]]], comparisons: int = 1) -> bool:
    """Return whether a ratio of times is shown to be above 1 in each of two modes.

    A round's cycles share the luck of its processes, so the median of a mode's cycles in a round is one observation.
    Both modes share one variance between rounds: a mode that is seen in two rounds does not show its own.

    Args:
        modes: of each mode, the log-ratios of its cycles by round.
        comparisons: pairs that are tested together. The level is split over them and over both modes (Bonferroni).
    """
    rounds = [[median(logs) for logs in mode] for mode in modes]
    df = sum(len(logs) - 1.0 for logs in rounds)
    if df < ROUNDS_FOR_VERDICT - 1:
        return False
    variance = sum((log - fmean(logs)) ** 2 for logs in rounds for log in logs) / df
    level = 1 - ALPHA / (len(rounds) * max(1, comparisons))
    return all(estimate(fmean(logs), math.sqrt(variance / len(logs)), df).log_interval(level)[0] > 0 for logs in rounds)


def levels(values: Sequence[float], slow: Sequence[bool]) -> tuple[float, float]:
    """Return the medians of the fast and of the slow blocks; of all where one part is empty, as all are the same."""
    fast_values, slow_values = [*compress(values, map(not_, slow))], [*compress(values, slow)]
    return median(fast_values or values), median(slow_values or values)


def trending(cells: Sequence[Sequence[Sequence[float]]]) -> list[Estimate | None]:
    """Return the trend of each cell of a group; None where there is none that matters, or too little to say.

    A trend is the cell's ratio to the others in the last third of the cycles, over that in the first third.

    Args:
        cells: of each the log-ratios to the others in each round, in order of cycle. They are one family:
            p values are adjusted, so that a group of many cells does not raise more false alarms than one of two.
    """
    changes = [
        over(
            median(logs[-(len(logs) // 3) :]) - median(logs[: len(logs) // 3])
            for logs in rounds
            if len(logs) >= CYCLES_OF_TREND_LEAST
        )
        for rounds in cells
    ]
    tested = [index for index, change in enumerate(changes) if change.count >= ROUNDS_FOR_VERDICT]
    p_values = dict(zip(tested, adjusted_p([changes[index].p() for index in tested]), strict=True))
    return [
        change if p_values.get(index, 1.0) <= ALPHA and abs(change.mean_log) > math.log1p(SMALLEST_DIFFERENCE) else None
        for index, change in enumerate(changes)
    ]


class LaunchSteps(NamedTuple):
    """Ln of the steps of one launch, block by block in order."""

    blocks: Sequence[float]
    early: Sequence[float] = ()  # of the first third of each block; empty: not known
    late: Sequence[float] = ()  # of the last third


class Change(NamedTuple):
    """What a step becomes."""

    log: float  # ln of the last over the first
    is_in_blocks: bool  # of each block, which begins anew; else of the launch


def change_in_launches(launches: Sequence[LaunchSteps]) -> Change | None:
    """Return what a cell's step becomes from begin to end of its launches, or of its blocks; None: it stays the same.

    Args:
        launches: of one cell, `ROUNDS_FOR_VERDICT` of them or more; what is disturbed need not be left out.
    """
    count = min(len(launch.blocks) for launch in launches)
    slopes = [median_slope(launch.blocks) for launch in launches]
    in_launch = [slope * len(launch.blocks) for slope, launch in zip(slopes, launches, strict=True)]
    of_blocks = [
        [(last - first) / BETWEEN_THIRDS for first, last in zip(launch.early, launch.late, strict=True)]
        for launch in launches
    ]
    in_block = [median(changes) for changes in of_blocks] if all(of_blocks) else []
    if median(map(abs, in_launch)) < CHANGE_LEAST and median(map(abs, in_block or [0.0])) < CHANGE_LEAST:
        return None
    least = max(CHANGE_LEAST, CHANGE_LEAST_SPREADS * _spread(launches, slopes))
    if count >= CYCLES_LEAST and _is_shown(in_launch, least):
        return Change(median(in_launch), is_in_blocks=False)
    every = [*chain.from_iterable(of_blocks)]
    if in_block and _is_shown(in_block, max(CHANGE_LEAST, CHANGE_LEAST_SPREADS * _sd_of(every))):
        change = median(in_launch)
        is_in_blocks = abs(change) < least or change * median(in_block) < 0
        return Change(median(in_block) if is_in_blocks else change, is_in_blocks)
    if not in_block or not 1 < count < CYCLES_LEAST:
        return None
    # Few blocks do not distinguish growth from noise: what they show within them has to agree, by half at least.
    change, inside = median(in_launch), count * median(every)
    weaker = [
        min(whole, 2 * count * part, key=abs) if whole * part > 0 else 0.0
        for whole, part in zip(in_launch, in_block, strict=True)
    ]
    agrees = change * inside > 0 and abs(inside) >= least / 2 and _agreeing(weaker, least / 2) >= len(weaker) - 1
    return Change(change, is_in_blocks=False) if abs(change) >= least and agrees else None


def median_slope(logs: Sequence[float]) -> float:
    """Return the median of all slopes between two of some values in order (Theil 1950, Sen 1968); of one 0.

    Of very many values it is that of as many as SLOPE_VALUES_MAX, of even distances.
    """
    every = math.ceil(len(logs) / SLOPE_VALUES_MAX) or 1
    pairs = combinations([*enumerate(logs)][::every], 2)
    return median([(later - log) / (after - at) for (at, log), (after, later) in pairs] or [0.0])


def _is_shown(changes: Sequence[float], least: float) -> bool:
    """Return whether the median of launches is a change of a size, and all of them show it but one of many."""
    exceptions = int(len(changes) >= LAUNCHES_FOR_EXCEPTION)
    return abs(median(changes)) >= least and _agreeing(changes, least) >= len(changes) - exceptions


def _agreeing(changes: Sequence[float], least: float) -> int:
    """Return how many changes are of a size, and in the direction of their median."""
    sign = math.copysign(1.0, median(changes))
    return sum(sign * change >= least for change in changes)


def _spread(launches: Sequence[LaunchSteps], slopes: Sequence[float]) -> float:
    """Return how far blocks, or their thirds, lie beside the line of their launch, as an SD."""
    beside = list[float]()
    for launch, slope in zip(launches, slopes, strict=True):
        places = range(len(launch.blocks))
        points = [(place + BETWEEN_THIRDS / 4, log) for place, log in zip(places, launch.early, strict=False)]
        points += [(place + 1 - BETWEEN_THIRDS / 4, log) for place, log in zip(places, launch.late, strict=False)]
        levels_of = [log - slope * place for place, log in points or enumerate(launch.blocks)]
        beside += [level - median(levels_of) for level in levels_of]
    return _sd_of(beside)


def _sd_of(values: Sequence[float]) -> float:
    """Return the robust SD of some values."""
    middle = median(values)
    return MAD_TO_SD * median(abs(value - middle) for value in values)


def percentile_ns(step_ns: NDArray[np.integer[Any]], percent: int) -> int | None:
    """Return a percentile of step times; null where less than one whole step would lie above it.

    Definition 8 of Hyndman and Fan, "Sample quantiles in statistical packages", Am. Stat. 50 (1996): of few steps the
    usual one lies too low.
    """
    if step_ns.size * (PERCENT - percent) < PERCENT:
        return None
    # Only the runner asks for these, of arrays: a table would wait for NumPy's import longer than for all else.
    import numpy as np

    return round(float(np.percentile(step_ns, percent, method="median_unbiased")))
