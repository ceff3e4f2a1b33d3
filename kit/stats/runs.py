"""Two runs at different times cannot be paired: the unit is the run, and runs of one kind say how much runs differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from kit.stats.difference import bounded_exp, log_interval, two_sided_p
from kit.stats.verdict import ALPHA, SAME_LEVEL, SMALLEST_DIFFERENCE, Verdict, adjusted_p, verdict_of

# Of one side. Two have one degree of freedom: see ROUNDS_FOR_VERDICT.
RUNS_FOR_SPREAD = 3
DF_LEAST = RUNS_FOR_SPREAD - 1.0

SlowerBy = Literal["slower", "not_slower", "unresolved"]


@dataclass(frozen=True)
class RunDifference:
    """The ratio of the steps of two sides, each of one or more runs.

    Attributes:
        verdict: of the first side.
        ratio: of the geometric means; above 1 the first is slower.
        mean_log: its logarithm.
        se: standard error of that; None, with all that needs it, where too few runs show how much runs differ.
        df: degrees of freedom.
        low: lower end of the 95 % interval of the ratio.
        high: upper end.
        p: two-sided, against a ratio of 1.
    """

    verdict: Verdict
    ratio: float
    mean_log: float
    se: float | None = None
    df: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


def over_runs(
    a: Sequence[float], b: Sequence[float], *, same_hardware: bool, smallest: float = SMALLEST_DIFFERENCE
) -> RunDifference:
    """Compare two sides of runs.

    Args:
        a: the logarithm of the step of each run of the first side; at least one.
        b: those of the second.
        same_hardware: then runs of both sides spread alike, and three of either side are enough: the spread is pooled
            over sides of two and more. Other hardware may spread otherwise: each side needs its own three (Welch).
        smallest: relative difference that matters.
    """
    sides = [np.asarray(side, np.float64) for side in (a, b)]
    mean_log = float(sides[0].mean() - sides[1].mean())
    missing = [max(0, RUNS_FOR_SPREAD - side.size) for side in sides]
    needed = min(missing) if same_hardware else sum(missing)
    if needed:
        return RunDifference("unresolved", bounded_exp(mean_log), mean_log)
    se, df = _pooled(sides) if same_hardware else _welch(sides)
    low, high = log_interval(mean_log, se, df, 1 - ALPHA)
    p = two_sided_p(mean_log, se, df)
    return RunDifference(
        verdict=verdict_of(mean_log, se, df, p <= ALPHA, smallest),
        ratio=bounded_exp(mean_log),
        mean_log=mean_log,
        se=se,
        df=df,
        low=bounded_exp(low),
        high=bounded_exp(high),
        p=p,
    )


class LogDifference(NamedTuple):
    """The logarithm of a ratio over rounds or over runs; positive is slower."""

    mean_log: float
    se: float | None  # standard error; None: unknown
    df: float | None  # degrees of freedom


def slower_by_more_than(rows: Sequence[LogDifference | None], pct: float) -> list[SlowerBy]:
    """Answer --fail-if-slower for each row: shown to be slower by more, shown not to be, or neither.

    Args:
        rows: None: nothing to judge by. Below two degrees of freedom nothing is shown.
        pct: slower by that much is allowed.

    Returns:
        "slower" where the one-sided p against `pct`, adjusted over all rows, is at most ALPHA: of many rows that are
        all alike, one is called slower in at most one of twenty comparisons. "not_slower" where the one-sided 95 %
        upper bound is within `pct`: that all rows pass needs no adjustment, as each of them has to.
    """
    allowed = math.log1p(pct / 100)
    known = [
        row for row in rows if row is not None and row.se is not None and row.df is not None and row.df >= DF_LEAST
    ]
    p_values = iter(adjusted_p([_p_beyond(row, allowed) for row in known]))
    answers: list[SlowerBy] = []
    for row in rows:
        if row is None or row.se is None or row.df is None or row.df < DF_LEAST:
            answers.append("unresolved")
        elif next(p_values) <= ALPHA:
            answers.append("slower")
        else:
            _, high = log_interval(row.mean_log, row.se, row.df, SAME_LEVEL)
            answers.append("not_slower" if high <= allowed else "unresolved")
    return answers


def _p_beyond(row: LogDifference, allowed: float) -> float:
    """Return the one-sided p against a difference of at most `allowed`."""
    p = two_sided_p(row.mean_log - allowed, row.se or 0.0, row.df or 1.0) / 2
    return p if row.mean_log > allowed else 1 - p


def _pooled(sides: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return standard error and degrees of freedom with one variance for both sides; a lone run adds nothing to it."""
    df = float(sum(side.size - 1 for side in sides))
    variance = sum(float(np.sum((side - side.mean()) ** 2)) for side in sides) / df
    return math.sqrt(variance * sum(1 / side.size for side in sides)), df


def _welch(sides: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return them with a variance for each side (Welch 1947, Satterthwaite's degrees of freedom)."""
    variances = [float(side.var(ddof=1)) / side.size for side in sides]
    total = sum(variances)
    squares = sum(variance**2 / (side.size - 1) for variance, side in zip(variances, sides, strict=True))
    smaller = float(min(side.size for side in sides) - 1)
    return math.sqrt(total), max(smaller, total**2 / squares) if squares else smaller
