"""Questions whose answer is known, asked of launches that were measured: nothing differs, or a planted slow-down does.

time ─►    u u 2 u 5 3 │ 3 5 u 2 u u │ u 3 u 2 5 u │ …       one round after the other; u: not slowed

shuffled   sides share their time, as cells of one run do       a b · · · ·   b · · · · ·   …
apart      one side ran before the other, as two runs do        a a a a a … · · · … b b b b b
planted    slowed against unslowed of the same round            b · a · · ·   · · a b · ·   …
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from kit.stats.rules import MeasuredLaunch, Question
from kit.stats.verdict import LAUNCHES_FOR_VERDICT

# Windows that many places apart and fewer make 45 pairs: a share of 95 in 100 says something of them.
WINDOW_PLACES = 9
# A side of fewer says little of one of ten.
SIDE_MIN = 5
# That many unslowed launches give sides long enough and pairs enough for a band.
UNSLOWED_FOR_BAND = 2 * SIDE_MIN + WINDOW_PLACES - 1
# Of two launches a side, one number decides the spread.
PLANTED_MIN = 3
# More pairs of windows say little more: each launch is in most of them.
APART_MAX = 400


def launches_a_side(unslowed: Sequence[MeasuredLaunch]) -> int:
    """As many as a verdict needs; where there are few, fewer, so that enough comparisons can be made of them."""
    if len(unslowed) < UNSLOWED_FOR_BAND:
        return min(LAUNCHES_FOR_VERDICT, len(unslowed) // 2)
    return min(LAUNCHES_FOR_VERDICT, (len(unslowed) - WINDOW_PLACES + 1) // 2)


def shuffled(unslowed: Sequence[MeasuredLaunch], comparisons: int, random: np.random.Generator) -> list[Question]:
    """Neighbours in time, one to each side at random.

    Args:
        unslowed: in the order in which they ran.
        comparisons: how many to draw; each draws its pairs anew.
        random: source of the draws.
    """
    pairs = list(zip(unslowed[::2], unslowed[1::2], strict=False))
    side = launches_a_side(unslowed)
    questions = []
    for _ in range(comparisons):
        drawn = [pairs[i] for i in random.choice(len(pairs), side, replace=False)]
        turned = [pair[::-1] if random.random() < 0.5 else pair for pair in drawn]  # noqa: PLR2004 - a coin
        questions.append(Question([a for a, _ in turned], [b for _, b in turned], paired=True))
    return questions


def apart(unslowed: Sequence[MeasuredLaunch], random: np.random.Generator) -> list[Question]:
    """All pairs of windows of consecutive launches that share none; which is the baseline is drawn at random."""
    side = launches_a_side(unslowed)
    starts = range(len(unslowed) - side + 1)
    pairs = [(i, j) for i, j in combinations(starts, 2) if j - i >= side]
    if len(pairs) > APART_MAX:
        pairs = [pairs[i] for i in sorted(random.choice(len(pairs), APART_MAX, replace=False))]
    questions = []
    for pair in pairs:
        i, j = pair[::-1] if random.random() < 0.5 else pair  # noqa: PLR2004 - a coin
        questions.append(Question(unslowed[i : i + side], unslowed[j : j + side], paired=False))
    return questions


def planted(
    slowed: Sequence[MeasuredLaunch],
    unslowed: Sequence[MeasuredLaunch],
    comparisons: int,
    random: np.random.Generator,
) -> list[Question]:
    """Slowed launches against unslowed ones of the same round; none where fewer than three rounds have both."""
    beside = {launch.round: [one for one in unslowed if one.round == launch.round] for launch in slowed}
    usable = [launch for launch in slowed if beside[launch.round]]
    side = min(LAUNCHES_FOR_VERDICT, len(usable))
    if side < PLANTED_MIN:
        return []
    questions = []
    for _ in range(comparisons):
        candidate = [usable[i] for i in random.choice(len(usable), side, replace=False)]
        baseline = [beside[launch.round][random.integers(len(beside[launch.round]))] for launch in candidate]
        questions.append(Question(candidate, baseline, paired=True))
    return questions
