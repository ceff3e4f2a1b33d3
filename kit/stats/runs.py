"""Two runs at different times cannot be paired: the unit is the run, and runs of one kind say how much runs differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from kit.stats.difference import Difference, bounded_exp
from kit.stats.verdict import ALPHA, SAME_LEVEL, SMALLEST_DIFFERENCE, Versus, adjusted_p, verdict_of, versus_of

# Of one side. Two have one degree of freedom: see ROUNDS_FOR_VERDICT.
RUNS_FOR_SPREAD = 3
DF_LEAST = RUNS_FOR_SPREAD - 1.0

SlowerBy = Literal["slower", "not_slower", "unresolved"]


def over_runs(
    a: Sequence[float], b: Sequence[float], *, same_hardware: bool, smallest: float = SMALLEST_DIFFERENCE
) -> Versus:
    """Return what two sides of runs say of the first side; p is not yet adjusted, without an interval runs are too few.

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
    count = min(len(a), len(b))
    if min(missing) if same_hardware else sum(missing):
        ratio = bounded_exp(mean_log)
        return Versus(verdict="unresolved", ratio=ratio, mean_log=mean_log, unit="run", count=count)
    difference = Difference(mean_log, *(_pooled(sides) if same_hardware else _welch(sides)), count)
    p = difference.p()
    return versus_of(difference, verdict_of(difference, p <= ALPHA, smallest), p, unit="run")


def slower_by_more_than(rows: Sequence[Versus | None], pct: float) -> list[SlowerBy]:
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
    differences = [_with_spread(row) for row in rows]
    known = [difference for difference in differences if difference is not None]
    p_values = iter(adjusted_p([_p_beyond(difference, allowed) for difference in known]))
    answers: list[SlowerBy] = []
    for difference in differences:
        if difference is None:
            answers.append("unresolved")
        elif next(p_values) <= ALPHA:
            answers.append("slower")
        else:
            _, high = difference.log_interval(SAME_LEVEL)
            answers.append("not_slower" if high <= allowed else "unresolved")
    return answers


def _with_spread(row: Versus | None) -> Difference | None:
    difference = None if row is None else row.difference
    return difference if difference is not None and difference.df >= DF_LEAST else None


def _p_beyond(difference: Difference, allowed: float) -> float:
    """Return the one-sided p against a difference of at most `allowed`."""
    p = difference.p(allowed) / 2
    return p if difference.mean_log > allowed else 1 - p


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
