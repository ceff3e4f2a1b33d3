"""How two groups of launches differ: the ratio of their times, its 95 % interval, and a p value.

All of it on logarithms of launch medians, where a ratio is a difference and noise is nearly symmetric. A table's
differences are taken together, as arrays over its rows: tens of thousands of rows cost a second that way, not a minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.stats.interval import t_quantiles

# One launch a side has no spread, so nothing can be said of the difference.
LAUNCHES_MIN = 2


@dataclass(frozen=True, slots=True)
class Spread:
    """Variance of ln launch medians, as the test used it: per pair when paired, else per side."""

    variances: tuple[float, ...]

    @property
    def variance(self) -> float:
        """Of a difference between two single launches."""
        return sum(self.variances)

    @property
    def degrees_of_freedom(self) -> float:
        """That each launch beyond the first brings: one when paired, else Welch-Satterthwaite for equal sides."""
        squares = sum(variance**2 for variance in self.variances)
        return self.variance**2 / squares if squares > 0 else 1.0


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


class _Logs(NamedTuple):
    """Of ln launch medians, one entry a row."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    launches: NDArray[np.int64]


def paired_difference(candidate_ns: Mapping[int, float], baseline_ns: Mapping[int, float]) -> Difference | None:
    """Compare launch medians by round, for launches interleaved in one run (paired t test on logarithms).

    Args:
        candidate_ns, baseline_ns: round -> launch median; rounds that only one side has are left out.

    Returns:
        Null with fewer than two common rounds.
    """
    return paired_differences([(candidate_ns, baseline_ns)])[0]


def paired_differences(rows: Sequence[tuple[Mapping[int, float], Mapping[int, float]]]) -> list[Difference | None]:
    """`paired_difference` of each row's candidate and baseline."""
    rounds = [sorted(candidate.keys() & baseline.keys()) for candidate, baseline in rows]
    known = [row for row, common in enumerate(rounds) if len(common) >= LAUNCHES_MIN]
    candidate, baseline = (
        _concatenated([[rows[row][side][r] for r in rounds[row]] for row in known]) for side in (0, 1)
    )
    logs = _moments(candidate - baseline, [len(rounds[row]) for row in known])
    found = _differences(
        logs.mean,
        np.sqrt(logs.variance / logs.launches),
        logs.launches - np.float64(1),
        launches=logs.launches,
        paired=True,
        variances=[logs.variance],
    )
    return _in_place(found, known, len(rows))


def welch_difference(candidate_ns: Sequence[float], baseline_ns: Sequence[float]) -> Difference | None:
    """Compare launch medians of two runs (Welch's t test on logarithms). Null with fewer than two launches a side."""
    return welch_differences([(candidate_ns, baseline_ns)])[0]


def welch_differences(rows: Sequence[tuple[Sequence[float], Sequence[float]]]) -> list[Difference | None]:
    """`welch_difference` of each row's candidate and baseline."""
    known = [row for row, sides in enumerate(rows) if min(map(len, sides)) >= LAUNCHES_MIN]
    candidate, baseline = (
        _moments(_concatenated([rows[row][side] for row in known]), [len(rows[row][side]) for row in known])
        for side in (0, 1)
    )
    of_means = candidate.variance / candidate.launches, baseline.variance / baseline.launches
    squares = of_means[0] ** 2 / (candidate.launches - 1) + of_means[1] ** 2 / (baseline.launches - 1)
    total = of_means[0] + of_means[1]
    launches = np.minimum(candidate.launches, baseline.launches)
    freedom: NDArray[np.float64] = launches - np.float64(1)  # where no side has a spread
    np.divide(total**2, squares, out=freedom, where=squares > 0)
    found = _differences(
        candidate.mean - baseline.mean,
        np.sqrt(total),
        freedom,
        launches=launches,
        paired=False,
        variances=[candidate.variance, baseline.variance],
    )
    return _in_place(found, known, len(rows))


def _concatenated(groups: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Logarithms of all values, one group after the other."""
    return np.log(np.fromiter(chain.from_iterable(groups), np.float64))


def _moments(logs: NDArray[np.float64], sizes: Sequence[int]) -> _Logs:
    """Mean and variance of each group, of those that stand one after the other in `logs`."""
    launches = np.asarray(sizes, np.int64)
    starts = np.cumsum(launches) - launches
    mean, variance = np.empty(len(sizes)), np.empty(len(sizes))
    for size in set(sizes):
        groups = launches == size
        values = logs[starts[groups][:, np.newaxis] + np.arange(size)]
        mean[groups], variance[groups] = values.mean(axis=1), values.var(axis=1, ddof=1)
    return _Logs(mean, variance, launches)


def _differences(
    centre: NDArray[np.float64],
    standard_error: NDArray[np.float64],
    degrees_of_freedom: NDArray[np.float64],
    *,
    launches: NDArray[np.int64],
    paired: bool,
    variances: Sequence[NDArray[np.float64]],
) -> list[Difference]:
    half = t_quantiles(degrees_of_freedom) * standard_error
    # From two launches that differ a thousandfold the interval has no end that a float holds: it is infinite.
    with np.errstate(over="ignore"):
        ends = np.exp(centre), np.exp(centre - half), np.exp(centre + half)
    columns = [*ends, _two_sided_p(centre, standard_error, degrees_of_freedom), launches]
    spreads = zip(*(side.tolist() for side in variances), strict=True)
    return [
        Difference(ratio, low, high, p, count, paired, Spread(sides))
        for (ratio, low, high, p, count), sides in zip(
            zip(*(column.tolist() for column in columns), strict=True), spreads, strict=True
        )
    ]


def _two_sided_p(
    centre: NDArray[np.float64], standard_error: NDArray[np.float64], degrees_of_freedom: NDArray[np.float64]
) -> NDArray[np.float64]:
    from scipy.special import stdtr

    # Without an error every launch gave the same median: a coarse clock, or a copy of the same launches.
    p = np.where(centre == 0, 1.0, 0.0)
    spread = standard_error > 0
    p[spread] = 2 * stdtr(degrees_of_freedom[spread], -np.abs(centre[spread]) / standard_error[spread])
    return p


def _in_place(found: Sequence[Difference], known: Sequence[int], rows: int) -> list[Difference | None]:
    differences: list[Difference | None] = [None] * rows
    for row, difference in zip(known, found, strict=True):
        differences[row] = difference
    return differences
