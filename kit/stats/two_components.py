"""What a start and a cycle each add to the spread of a ratio, and how many cycles a round should have.

    round 1   cycle  cycle  cycle  cycle     the median of its cycles:  level + start + cycle
    round 2   cycle  cycle  cycle  cycle     …

    variance of a round  =  that of a start  +  that of the median of its cycles

A start costs seconds and a cycle a fraction of one, so that cycles are cheap; but no number of cycles helps against
what a start keeps. After Kalibera and Jones, Rigorous benchmarking in reasonable time (ISMM 2013,
10.1145/2464157.2464160), who choose the number of cycles for which a given time leaves the smallest variance. Here it
is the smallest half-width of the interval, which few rounds make wider by Student's t, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from statistics import fmean, median
from typing import NamedTuple

from kit.stats.estimate import ALPHA, ROUNDS_FORESEEN, ROUNDS_PRELIMINARY, t_quantile

# The variance of the median of 1, 2, 3 … normal values over that of their mean. Of many values it is pi / 2; of few it
# is less, and less still of an even number, whose median is a mean of two.
MEDIAN_VARIANCES = (1.0, 1.0, 1.346, 1.192, 1.434, 1.283, 1.478, 1.347, 1.497, 1.381, 1.502, 1.414)
MEDIAN_VARIANCE_OF_MANY = math.pi / 2
# The standard deviation of the difference of two normal values over the median of its absolute value.
SD_OF_DIFFERENCE = 1.4826
# What a start usually keeps, as a log-ratio: 1 to 4 % in 33 pairs of three profiles. It counts like so many rounds, as
# the spread of two or three rounds says hardly anything. Eight rounds say it by themselves.
START_SD_USUAL, ROUNDS_USUAL = 0.015, 3
# A round has at least as many cycles as make it count. The median of the most is known to a quarter of a cycle's
# spread: more would cost seconds a round and hardly show.
CYCLES_LEAST, CYCLES_MOST = 3, 24
CYCLES = range(CYCLES_LEAST, CYCLES_MOST + 1)
# Of a clock that shows no spread at all.
TINY = 1e-300


class Components(NamedTuple):
    """Variances of a pair's log-ratio."""

    start: float
    cycle: float

    def of_round(self, cycles: int) -> float:
        """Return the variance of a round with so many cycles."""
        return self.start + self.cycle * median_variance(cycles)


def median_variance(count: float) -> float:
    """Return the variance of the median of so many values, over that of one."""
    places = round(count)
    return (MEDIAN_VARIANCES[places - 1] if places <= len(MEDIAN_VARIANCES) else MEDIAN_VARIANCE_OF_MANY) / count


class GroupSeen(NamedTuple):
    """What some rounds show of a group of cells."""

    pairs: Sequence[Components]
    cycle_s: float  # that a cycle of all its cells takes


def components(rounds: Sequence[Sequence[float]]) -> Components | None:
    """Return both components of a log-ratio; None where no two rounds have two cycles.

    Args:
        rounds: of each round, the log-ratio in each of its cycles.
    """
    known = [[*cycles] for cycles in rounds if len(cycles) > 1]
    if len(known) < 2:  # noqa: PLR2004 - a spread
        return None
    medians, count = [median(cycles) for cycles in known], fmean(map(len, known))
    # Half of the cycles of a round may be stalled, and decide nothing.
    apart = median(abs(a - b) for cycles in known for a, b in combinations(cycles, 2))
    cycle = (SD_OF_DIFFERENCE * apart) ** 2 / 2
    level = fmean(medians)
    between = sum((value - level) ** 2 for value in medians) / (len(medians) - 1)
    start = max(0.0, between - cycle * median_variance(count))
    weight, usual = len(medians) - 1, ROUNDS_USUAL if len(medians) < ROUNDS_PRELIMINARY else 0
    return Components((weight * start + usual * START_SD_USUAL**2) / (weight + usual), cycle)


def half_width(pair: Components, cycles: int, rounds: int) -> float:
    """Return half the width of the 95 % interval of a log-ratio after so many rounds, two at least."""
    return t_quantile(rounds - 1.0, 1 - ALPHA / 2) * math.sqrt(pair.of_round(cycles) / rounds)


def rounds_for_half_width(pair: Components, cycles: int, most: float) -> int:
    """Return how many rounds make the interval as narrow; ROUNDS_FORESEEN where more are needed."""
    candidates = range(ROUNDS_PRELIMINARY, ROUNDS_FORESEEN)
    return next((rounds for rounds in candidates if half_width(pair, cycles, rounds) <= most), ROUNDS_FORESEEN)


def best_cycles(
    groups: Mapping[str, GroupSeen], start_s: float, done: int, left_s: float | None, most: int = ROUNDS_FORESEEN
) -> dict[str, int]:
    """Return how many cycles each group should have in the rounds to come.

    Args:
        groups: by key.
        start_s: what a round takes beside its cycles.
        done: rounds that have run, two at least.
        left_s: until the end of the run; None: it ends by precision.
        most: rounds after which it ends in any case.

    Returns:
        The numbers of which no single one can be changed to make the intervals of all pairs narrower in the mean.
    """
    # Of each group and number of cycles, how wide that makes all its intervals: the sum of half the logarithms.
    widths = {
        key: [sum(math.log(max(TINY, pair.of_round(cycles))) for pair in seen.pairs) / 2 for cycles in CYCLES]
        for key, seen in groups.items()
    }
    pairs = max(1, sum(len(seen.pairs) for seen in groups.values()))

    def mean_width(chosen: Mapping[str, int]) -> float:
        round_s = start_s + sum(chosen[key] * seen.cycle_s for key, seen in groups.items())
        width = sum(widths[key][cycles - CYCLES_LEAST] for key, cycles in chosen.items()) / pairs
        if left_s is None:
            # The time that a precision takes is proportional to the variance of a round, times what a round takes.
            return width + math.log(round_s) / 2
        # Whole rounds would let a last one that only just begins decide. One begins however little is left.
        more = max(TINY, min(most - done, max(left_s, start_s) / round_s))
        return width + math.log(t_quantile(done + more - 1.0, 1 - ALPHA / 2)) - math.log(more) / 2

    chosen, best, improved = dict.fromkeys(groups, CYCLES_LEAST), math.inf, True
    while improved:
        improved = False
        for key, cycles in product(groups, CYCLES):
            if (width := mean_width(chosen | {key: cycles})) < best:
                best, chosen, improved = width, chosen | {key: cycles}, True
    return chosen
