"""What a family of estimates says of each of them: its verdict, its adjusted p, and the level of its interval.

Verdicts of a family: "same" where the difference is shown to be smaller than the smallest that matters (two one-sided
tests, Schuirmann 1987, adjusted by Holm 1979); else one of the metric's two words, "faster" or "slower", where p
against no difference, adjusted within the family, is at most ALPHA, however small the difference is; else "unresolved",
and the interval says what is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from msgspec.structs import replace

from kit.stats.estimate import ALPHA, ROUNDS_FOR_VERDICT, SAME_LEVEL, SMALLEST_DIFFERENCE, TIME_WORDS, Estimate

SlowerBy = Literal["slower", "not_slower", "unresolved"]


def judge(
    family: Sequence[Estimate],
    *,
    words: tuple[str, str] = TIME_WORDS,
    matters: float | Sequence[float] = math.log1p(SMALLEST_DIFFERENCE),
    chosen_among: int = 1,
) -> list[Estimate]:
    """Judge estimates as one family, in the order given; the false discovery rate within it is `ALPHA`.

    Args:
        family: those without an interval, of too few rounds, or with `contention_pct` are returned as they are.
        words: verdict on a mean below and above 0.
        matters: the smallest difference that matters, of each or of all. On the logarithm a ratio and its inverse are
            alike.
        chosen_among: each was the most distant of so many, which are not here.

    Returns:
        Intervals of those with an adjusted p of at most ALPHA are at 1 - ALPHA * R / m, R of m being selected: of the
        intervals shown with a difference at most ALPHA miss (false coverage rate, Benjamini and Yekutieli 2005,
        10.1198/016214504000001907), and none of them includes 1. The others' are at 1 - ALPHA.
    """
    limits = [matters] * len(family) if isinstance(matters, float) else list(matters)
    judged = list(family)
    tested = [
        index
        for index, known in enumerate(family)
        if known.has_interval
        and known.contention_pct is None
        and (known.unit not in ("round", "run") or known.count >= ROUNDS_FOR_VERDICT)
    ]
    is_same = [p <= ALPHA for p in holm([p_equivalent(family[index], limits[index]) for index in tested])]
    p_values = [min(1.0, family[index].p() * chosen_among) for index in tested]
    # What is the same rejects nothing beside it: without this a false alarm would ride on the small differences found.
    differing = adjusted_p([1.0 if same else p for same, p in zip(is_same, p_values, strict=True)])
    selected_level = 1 - ALPHA * sum(p <= ALPHA for p in differing) / max(1, len(tested))
    for index, same, p, p_differing in zip(tested, is_same, adjusted_p(p_values), differing, strict=True):
        known, differs = family[index], p_differing <= ALPHA
        verdict = "same" if same else words[known.mean_log > 0] if differs else "unresolved"
        known = known.at_level(selected_level if differs else 1 - ALPHA)
        p_shown = p if same else p_differing
        judged[index] = replace(known, verdict=verdict, p_adjusted=p_shown, comparisons=len(tested))
    return judged


def p_equivalent(known: Estimate, matters: float) -> float:
    """Return the p against a difference of `matters` and more, in either direction (Schuirmann 1987)."""
    mean = known.mean_log
    return known.p(math.copysign(matters, mean)) / 2 if abs(mean) < matters else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted so that one wrong rejection in the family is as rare as of one (Holm 1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    scaled = (p_values[index] * (len(order) - rank) for rank, index in enumerate(order))
    adjusted = dict(zip(order, accumulate(scaled, max), strict=True))
    return [min(1.0, adjusted[index]) for index in range(len(order))]


def adjusted_p(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted for the false discovery rate (Benjamini and Hochberg 1995), in the order given."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    scaled = (p_values[index] * len(order) / (len(order) - rank) for rank, index in enumerate(order))
    adjusted = dict(zip(order, accumulate(scaled, min), strict=True))
    return [min(1.0, adjusted[index]) for index in range(len(order))]


def slower_by_more_than(rows: Sequence[Estimate | None], pct: float) -> list[SlowerBy]:
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
    judged = {index: row for index, row in enumerate(rows) if row is not None and row.df >= ROUNDS_FOR_VERDICT - 1}
    halves = {index: row.p(allowed) / 2 for index, row in judged.items()}
    beyond = [half if judged[index].mean_log > allowed else 1 - half for index, half in halves.items()]
    answers: list[SlowerBy] = ["unresolved"] * len(rows)
    for (index, row), p in zip(judged.items(), adjusted_p(beyond), strict=True):
        if p <= ALPHA:
            answers[index] = "slower"
        elif row.log_interval(SAME_LEVEL)[1] <= allowed:
            answers[index] = "not_slower"
    return answers
