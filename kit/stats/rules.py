"""Every rule asked the same question: is the candidate slower than the baseline? The kit's own, and other tools'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.stats import rival_rules
from kit.stats.difference import Difference, paired_difference, welch_difference
from kit.stats.verdict import Verdict, judge


class MeasuredLaunch(NamedTuple):
    """One launch that reached a steady state."""

    round: int
    median_ns: float
    steady_ns: NDArray[np.float64]  # (steps,)


class Question(NamedTuple):
    """Two sides with equally many launches, in pairs: those at the same place ran near each other if `paired`."""

    candidate: Sequence[MeasuredLaunch]
    baseline: Sequence[MeasuredLaunch]
    paired: bool


class Rule(NamedTuple):
    """A rule, and what it needs.

    Attributes:
        name: for the table.
        answer: the verdict on one question.
        needs_pairs: has nothing to say of launches that were not interleaved.
        ours: tells "same" from "unresolved".
    """

    name: str
    answer: Callable[[Question], Verdict]
    needs_pairs: bool = False
    ours: bool = False


def rules(paired_bands: dict[str, float], welch_bands: dict[str, float]) -> list[Rule]:
    """The kit's rules with each of their bands (name -> relative difference), then other tools'."""
    paired = [
        Rule(f"kit, paired, {label}", _ours(_paired, band), needs_pairs=True, ours=True)
        for label, band in paired_bands.items()
    ]
    welch = [Rule(f"kit, Welch, {label}", _ours(_welch, band), ours=True) for label, band in welch_bands.items()]
    return [*paired, *welch] + [Rule(name, _theirs(rule)) for name, rule in RIVALS.items()]


def _ours(difference: Callable[[Question], Difference | None], band: float) -> Callable[[Question], Verdict]:
    return lambda question: judge(difference(question), band=band).verdict


def _paired(question: Question) -> Difference | None:
    return paired_difference(_by_place(question.candidate), _by_place(question.baseline))


def _by_place(launches: Sequence[MeasuredLaunch]) -> dict[int, float]:
    return {place: launch.median_ns for place, launch in enumerate(launches)}


def _welch(question: Question) -> Difference | None:
    return welch_difference([one.median_ns for one in question.candidate], [one.median_ns for one in question.baseline])


def _theirs(
    rule: Callable[[rival_rules.Launches, rival_rules.Launches], rival_rules.Said],
) -> Callable[[Question], Verdict]:
    return lambda question: rule(
        [launch.steady_ns for launch in question.candidate], [launch.steady_ns for launch in question.baseline]
    )


RIVALS = {
    "pyperf t, every step": rival_rules.pyperf,
    "pyperf t, 3 values a launch": rival_rules.pyperf_as_it_runs,
    "pytest-benchmark median:5%": rival_rules.pytest_benchmark,
    "torch Compare, 1 % of the best": rival_rules.torch_compare,
    "Mann-Whitney, every step": rival_rules.mann_whitney,
}
