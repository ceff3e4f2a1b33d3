"""Verdicts on the pairs of one family: same, faster, slower, or unresolved.

Same: the difference is shown to be smaller than the smallest that matters (two one-sided tests, Schuirmann 1987, p
adjusted within the family by Holm 1979). Else faster or slower: p against a ratio of 1, adjusted within the family, is
at most 0.05, however small the difference is. Otherwise unresolved, and the interval says what is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from kit.stats.difference import Difference, bounded_exp, over_rounds

RULE = "rounds-4"
"""Version of the rule, in every output: another rule may judge the same rounds otherwise."""
RULE_OF_ALL_CYCLES = "rounds-4-all-cycles"
"""The same, of `--all-cycles`: cycles that others disturbed count like all others."""

# Others may take this fraction of the usable CPUs' time in a clean block.
# On quiet machines blocks show up to 6 % (99 of 100), which is the resolution of
# the kernel's ticks and the system's own work. With 5 % one quiet cycle in twenty would be measured again; with 20 %
# intervals beside neighbours were no narrower, and less often right (docs/explanation/method.md).
OTHERS_MOST = 0.10
# The mean over the clean cycles of a round, in which stray ticks cancel: quiet rounds had up to 4 %. A neighbour that
# always takes 9 % was seen in no block, and would make a ratio of unlike cells wrong by 15 % (bench_clean_bias.py).
OTHERS_MEAN_MOST = 0.05

Verdict = Literal["faster", "slower", "same", "unresolved"]
"""Of the first of a pair, against the second."""
Unit = Literal["round", "pair", "session", "run"]

# What is smaller is nobody's reason to change a framework, and what a member's neighbours cost it is of that size.
SMALLEST_DIFFERENCE = 0.01
# Two rounds have one degree of freedom: their interval is thirteen times their spread and their verdicts luck.
ROUNDS_FOR_VERDICT = 3
# Below, tables say "preliminary". It is also the first look of --until-precision: with a look after each round from
# the 3rd on intervals cover 90 % of the time, from the 8th 93 to 95 %.
ROUNDS_PRELIMINARY = 8
# Nobody waits for more, and the spread of a few rounds does not foretell so many.
ROUNDS_FORESEEN = 1000
ALPHA = 0.05
SAME_LEVEL = 1 - 2 * ALPHA


class Versus(msgspec.Struct, frozen=True, kw_only=True):
    """One cell against its baseline. A ratio is of times per sample, of fits of their whole times: below 1 is faster.

    Attributes:
        low, high: the interval; null: too few rounds or runs.
        level: of the interval, 0.95 and more: what the family's adjustment leaves.
        p_adjusted: within the family; null where it was not tested.
        comparisons: how many of its family were tested; p is adjusted for them.
        unit: rounds of one run; pairs of runs that alternate; sessions of runs that do not; runs of a fleet's node.
        count: of these; of sessions or runs, on the smaller side.
        mean_log, se_log, df: of the log-ratio; what a limit on slow-downs is tested with.
        modes: the two ratios that the rounds or cycles change between.
        contention_pct: of unlike members beside so much of others' work that their ratio is of both: no verdict then.
        is_spread_assumed: how much sessions differ was not measured, but taken from `kit.stats.runs.SESSIONS_SD`.
    """

    verdict: Verdict
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    p_adjusted: float | None = None
    comparisons: int = 0
    unit: Unit = "round"
    count: int = 0
    mean_log: float | None = None
    se_log: float | None = None
    df: float | None = None
    modes: tuple[float, float] | None = None
    contention_pct: float | None = None
    is_spread_assumed: bool = False

    @property
    def difference(self) -> Difference | None:
        """What is known of the log-ratio; None without an interval."""
        if self.mean_log is None or self.se_log is None or self.df is None:
            return None
        return Difference(self.mean_log, self.se_log, self.df, self.count)

    def inverted(self) -> Versus:
        """Return what is so of the baseline against the cell; modes are not inverted."""
        low, high = (None if end is None else 1 / end for end in (self.high, self.low))
        return msgspec.structs.replace(
            self,
            verdict=OPPOSITE[self.verdict],
            ratio=None if self.ratio is None else 1 / self.ratio,
            low=low,
            high=high,
            mean_log=None if self.mean_log is None else -self.mean_log,
        )


OPPOSITE: dict[Verdict, Verdict] = {"faster": "slower", "slower": "faster", "same": "same", "unresolved": "unresolved"}


def judge_family(families_logs: Sequence[Sequence[float]], smallest: float = SMALLEST_DIFFERENCE) -> list[Versus]:
    """Judge all pairs of one group together, in the order given; the false discovery rate within it is `ALPHA`.

    Args:
        families_logs: for each pair its log-ratio in each round.
        smallest: relative difference that matters, 0.01 for 1 %. On the logarithm: a ratio and its inverse are alike.

    Returns:
        The first of each pair against the second. Intervals of those with an adjusted p of at most ALPHA are at
        1 - ALPHA * R / m, R of m being selected: of the intervals shown with a difference at most ALPHA miss (false
        coverage rate, Benjamini and Yekutieli 2005, 10.1198/016214504000001907), and none of them includes 1. The
        others' are at 1 - ALPHA.
    """
    differences = [over_rounds(logs) for logs in families_logs]
    tested = [known for known in differences if known is not None and known.count >= ROUNDS_FOR_VERDICT]
    judged = iter(judge_differences(tested, smallest))
    family = []
    for logs, difference in zip(families_logs, differences, strict=True):
        if difference is None:
            ratio = bounded_exp(logs[0]) if len(logs) else None
            family.append(Versus(verdict="unresolved", ratio=ratio, count=len(logs)))
        elif difference.count < ROUNDS_FOR_VERDICT:
            family.append(versus_of(difference, "unresolved"))
        else:
            family.append(next(judged))
    return family


def judge_differences(
    differences: Sequence[Difference],
    smallest: float = SMALLEST_DIFFERENCE,
    *,
    chosen_among: int = 1,
    unit: Unit = "round",
) -> list[Versus]:
    """Judge differences as one family; as `judge_family`.

    `chosen_among`: each was the most distant one of so many, which are not here.
    """
    equivalent = holm([_p_equivalent(difference, math.log1p(smallest)) for difference in differences])
    is_same = [p <= ALPHA for p in equivalent]
    p_values = [min(1.0, difference.p() * chosen_among) for difference in differences]
    adjusted = adjusted_p(p_values)
    # What is the same rejects nothing beside it: without this a false alarm would ride on the small differences found.
    differing = adjusted_p([1.0 if same else p for same, p in zip(is_same, p_values, strict=True)])
    selected_level = 1 - ALPHA * sum(p <= ALPHA for p in differing) / max(1, len(differences))
    family = []
    for difference, same, p, p_differing in zip(differences, is_same, adjusted, differing, strict=True):
        differs = p_differing <= ALPHA
        verdict: Verdict = "same" if same else _direction(difference) if differs else "unresolved"
        level = selected_level if differs else 1 - ALPHA
        p_shown = p if same else p_differing
        family.append(versus_of(difference, verdict, p_shown, comparisons=len(differences), level=level, unit=unit))
    return family


def versus_of(
    difference: Difference,
    verdict: Verdict,
    p_adjusted: float | None = None,
    *,
    comparisons: int = 0,
    level: float = 1 - ALPHA,
    unit: Unit = "round",
) -> Versus:
    """Return a difference with its verdict, and its interval at `level`."""
    low, high = difference.interval(level)
    return Versus(
        verdict=verdict,
        ratio=difference.ratio,
        low=low,
        high=high,
        level=level,
        p_adjusted=p_adjusted,
        comparisons=comparisons,
        unit=unit,
        count=difference.count,
        mean_log=difference.mean_log,
        se_log=difference.se,
        df=difference.df,
    )


def verdict_of(difference: Difference, differs: bool, smallest: float) -> Verdict:
    """Return the verdict on a lone difference, given whether the ratio was shown to differ from 1."""
    is_same = _p_equivalent(difference, math.log1p(smallest)) <= ALPHA
    return "same" if is_same else _direction(difference) if differs else "unresolved"


def _direction(difference: Difference) -> Verdict:
    return "slower" if difference.mean_log > 0 else "faster"


def _p_equivalent(difference: Difference, matters: float) -> float:
    """Return the p against a difference of `matters` and more, in either direction (Schuirmann 1987)."""
    mean_log = difference.mean_log
    return difference.p(math.copysign(matters, mean_log)) / 2 if abs(mean_log) < matters else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted so that one wrong rejection in the family is as rare as of one (Holm 1979)."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return [float(value) for value in adjusted]


def adjusted_p(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted for the false discovery rate (Benjamini and Hochberg 1995), in the order given."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    scaled = p[order] * p.size / np.arange(1, p.size + 1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return [float(value) for value in adjusted]


def rounds_for(difference: Difference, half_width: float, level: float) -> int | None:
    """Return how many rounds like these give the interval of the mean logarithm that half width.

    Args:
        difference: of two rounds and more.
        half_width: of the two-sided interval, as a logarithm; above 0.
        level: of the interval.

    Returns:
        At least ROUNDS_PRELIMINARY; None beyond ROUNDS_FORESEEN.
    """
    sd = difference.se * math.sqrt(difference.count)
    for rounds in range(ROUNDS_PRELIMINARY, ROUNDS_FORESEEN + 1):
        if Difference(0.0, sd / math.sqrt(rounds), rounds - 1.0, rounds).half_width(level) <= half_width:
            return rounds
    return None


def precise_enough(log_ratios: Sequence[float], precision_pct: float) -> bool:
    """Return whether the 95 % interval is within ± `precision_pct` of the ratio; never before the first look."""
    difference = over_rounds(log_ratios)
    if difference is None or difference.count < ROUNDS_PRELIMINARY:
        return False
    return difference.half_width(1 - ALPHA) <= math.log1p(precision_pct / 100)
