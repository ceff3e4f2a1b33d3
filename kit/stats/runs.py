"""Two runs at different times cannot be paired: the unit is the run, and runs of one kind say how much runs differ.

Three runs of a side show it. Of one run or two it is taken to be RUNS_SD, which was measured elsewhere; the rounds'
spread comes on top.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from kit.stats.difference import Difference
from kit.stats.verdict import ALPHA, SAME_LEVEL, SMALLEST_DIFFERENCE, Versus, adjusted_p, verdict_of, versus_of

# Of one side. Two have one degree of freedom: see ROUNDS_FOR_VERDICT.
RUNS_FOR_SPREAD = 3
DF_LEAST = RUNS_FOR_SPREAD - 1.0
# Standard deviation between runs of one machine, of the logarithm. Frameworks measured one after the other on a shared
# virtual machine: 0.056 to 0.107 (docs/method.md); a quiet machine of one's own has less.
RUNS_SD = 0.107
# How well that is known: it is of fourteen runs.
RUNS_SD_DF = 13.0
# Of two machines neither may be the one that RUNS_SD was measured on: half as much again.
UNLIKE_HARDWARE = 1.5

SlowerBy = Literal["slower", "not_slower", "unresolved"]


class RunLevel(NamedTuple):
    """One cell in one run."""

    log: float  # of its step
    se: float | None = None  # its standard error, over rounds; null: of one round
    rounds: int = 1


def over_runs(
    a: Sequence[RunLevel], b: Sequence[RunLevel], *, same_hardware: bool, smallest: float = SMALLEST_DIFFERENCE
) -> Versus:
    """Return what two sides of runs say of the first side; p is not yet adjusted.

    Args:
        a: the runs of the first side; at least one.
        b: those of the second.
        same_hardware: then runs of both sides spread alike, and three of either side are enough: the spread is pooled
            over sides of two and more. Other hardware may spread otherwise: each side needs its own three (Welch).
        smallest: relative difference that matters.
    """
    sides = [np.asarray([run.log for run in side]) for side in (a, b)]
    mean_log = float(sides[0].mean() - sides[1].mean())
    is_assumed = False
    if same_hardware and max(len(a), len(b)) >= RUNS_FOR_SPREAD:
        se, df = _pooled(sides)
    else:
        se, df = _welch([_of_mean(runs, same_hardware=same_hardware) for runs in (a, b)])
        is_assumed = min(len(a), len(b)) < RUNS_FOR_SPREAD
    difference = Difference(mean_log, se, df, min(len(a), len(b)))
    p = difference.p()
    versus = versus_of(difference, verdict_of(difference, p <= ALPHA, smallest), p, unit="run")
    return msgspec.structs.replace(versus, is_spread_assumed=is_assumed)


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


def _of_mean(runs: Sequence[RunLevel], *, same_hardware: bool) -> tuple[float, float]:
    """Return the variance of the mean of one side's runs, and its degrees of freedom."""
    logs = [run.log for run in runs]
    spread = float(np.var(logs, ddof=1)) if len(logs) > 1 else 0.0
    if len(logs) >= RUNS_FOR_SPREAD:
        return spread / len(logs), len(logs) - 1.0
    sd = RUNS_SD if same_hardware else RUNS_SD * UNLIKE_HARDWARE
    # One round does not show how much rounds differ: as much as runs, then.
    of_rounds = [(RUNS_SD, RUNS_SD_DF) if run.se is None else (run.se, max(1.0, run.rounds - 1.0)) for run in runs]
    parts = [(sd**2 / len(runs), RUNS_SD_DF), *((se**2 / len(runs) ** 2, df) for se, df in of_rounds)]
    total, df = _combined(parts)
    return max(total, spread / len(logs)), df


def _combined(variances: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the sum of variances, each given with its degrees of freedom, and the sum's (Satterthwaite 1946)."""
    total = sum(variance for variance, _ in variances)
    squares = sum(variance**2 / df for variance, df in variances)
    smallest = min(df for _, df in variances)
    return total, max(smallest, total**2 / squares) if squares else smallest


def _welch(means: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return standard error and degrees of freedom of a difference of means, each with its variance (Welch 1947)."""
    variance, df = _combined(means)
    return math.sqrt(variance), df
