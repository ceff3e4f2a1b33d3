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
# Standard deviation that is assumed of the logarithm of one machine's runs. Frameworks measured one after the other on
# a shared virtual machine spread by 0.056 to 0.107, their own step from round to round by 0.11 to 0.12, and runs hours
# apart by 0.026 where nothing else ran (docs/method.md).
RUNS_SD = 0.107
# How well that is known.
RUNS_SD_DF = 13.0
# Below, a run does not show how much its rounds differ. Two single rounds of one cell beside other work were seen to
# lie a factor of 4.5 apart.
ROUNDS_TO_SPREAD, ROUNDS_SD = 3, 0.6
# A margin: of two machines neither may be one that RUNS_SD was seen on.
UNLIKE_HARDWARE = 1.5
# Of nearly all CPU time nothing would be left over.
CONTENTION_MAX = 0.95

SlowerBy = Literal["slower", "not_slower", "unresolved"]


class RunLevel(NamedTuple):
    """One cell in one run."""

    log: float  # of its step
    se: float | None = None  # its standard error, over rounds; null: of one round
    rounds: int = 1
    contention: float = 0.0  # share of its CPUs' time that others took


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
        # Rounds of a few runs may spread by more than other runs do.
        noisier = [_of_rounds(runs) for runs in (a, b) if len(runs) < RUNS_FOR_SPREAD]
        for variance, df_of_rounds in noisier:
            if variance > se**2:
                se, df = math.sqrt(se**2 + variance), min(df, df_of_rounds)
        few = [run for runs in (a, b) if len(runs) < RUNS_FOR_SPREAD for run in runs]
        is_assumed = any(run.se is None or run.rounds < ROUNDS_TO_SPREAD for run in few)
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
    total, df = _combined([(sd**2 / len(runs), RUNS_SD_DF), _of_rounds(runs)])
    return (total, df) if total >= spread / len(runs) else (spread / len(runs), len(runs) - 1.0)


def _of_rounds(runs: Sequence[RunLevel]) -> tuple[float, float]:
    """Return what the runs' own rounds add to the variance of their mean, and its degrees of freedom.

    Too few rounds do not show how much they differ. What others took of a run's CPUs may have slowed it by as much as
    was left over, in all of its rounds alike: it counts beside them.
    """
    parts = []
    for run in runs:
        is_known = run.se is not None and run.rounds >= ROUNDS_TO_SPREAD
        parts.append((run.se or 0.0, run.rounds - 1.0) if is_known else (max(ROUNDS_SD, run.se or 0.0), RUNS_SD_DF))
        parts.append((-math.log1p(-min(run.contention, CONTENTION_MAX)), RUNS_SD_DF))
    return _combined([(se**2 / len(runs) ** 2, df) for se, df in parts if se])


def _combined(variances: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the sum of variances, each given with its degrees of freedom, and the sum's (Satterthwaite 1946)."""
    total = sum(variance for variance, _ in variances)
    squares = sum(variance**2 / df for variance, df in variances)
    smallest = min((df for _, df in variances), default=1.0)
    return total, max(smallest, total**2 / squares) if squares else smallest


def _welch(means: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return standard error and degrees of freedom of a difference of means, each with its variance (Welch 1947)."""
    variance, df = _combined(means)
    return math.sqrt(variance), df
