"""Launches drawn by the thousand, like those that were measured: level by level, each with the steps of a real launch.

level of a launch    normal in the logarithm, with the spread seen; each resembles the one before as much as was seen
steps of a launch    those of a real launch drawn at random, over its median: its spread, tails and autocorrelation
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.stats.expected_band import RESEMBLANCE_MAX
from kit.stats.launch_summary import lag_1_autocorrelation
from kit.stats.rules import MeasuredLaunch, Question
from kit.stats.verdict import LAUNCHES_FOR_VERDICT

# Of each launch: the rules that take every step find differences where there are none the more often, the more steps
# there are, so fewer are lenient to them; and a thousand comparisons stay within seconds.
STEPS_MAX = 300


class Model(NamedTuple):
    """What was seen in the launches that were not slowed."""

    median_ns: float
    launch_spread: float  # standard deviation of ln launch medians, over the whole run
    resemblance: float  # correlation of a launch's ln median with that of the launch before
    step_spread: float  # median over launches: standard deviation of ln steps
    step_autocorrelation: float  # median over launches, lag 1
    shapes: list[NDArray[np.float64]]  # one a launch: its steps over its median


def learn(unslowed: Sequence[MeasuredLaunch]) -> Model:
    """The model of launches in the order in which they ran, at least three."""
    logs = np.log([launch.median_ns for launch in unslowed])
    steps = [np.log(launch.steady_ns) for launch in unslowed]
    seen = lag_1_autocorrelation(logs) or 0.0
    return Model(
        median_ns=math.exp(float(logs.mean())),
        launch_spread=float(logs.std(ddof=1)),
        resemblance=min(max(seen, 0.0), RESEMBLANCE_MAX),
        step_spread=float(np.median([one.std(ddof=1) for one in steps])),
        step_autocorrelation=float(np.median([lag_1_autocorrelation(one) or 0.0 for one in steps])),
        shapes=[launch.steady_ns / launch.median_ns for launch in unslowed],
    )


def shuffled(model: Model, comparisons: int, random: np.random.Generator) -> Iterator[Question]:
    """Neighbours, one to each side: nothing differs."""
    return planted(model, 0.0, comparisons, random)


def apart(model: Model, comparisons: int, random: np.random.Generator) -> Iterator[Question]:
    """One side after the other: nothing differs."""
    for _ in range(comparisons):
        levels = _levels(model, 2 * LAUNCHES_FOR_VERDICT, random)
        first, second = levels[:LAUNCHES_FOR_VERDICT], levels[LAUNCHES_FOR_VERDICT:]
        yield Question(_launches(model, first, random), _launches(model, second, random), paired=False)


def planted(model: Model, slowdown_pct: float, comparisons: int, random: np.random.Generator) -> Iterator[Question]:
    """Neighbours, one to each side, in the order of a run's rounds; the candidate's are slower by `slowdown_pct`."""
    for _ in range(comparisons):
        pairs = _levels(model, 2 * LAUNCHES_FOR_VERDICT, random).reshape(-1, 2)
        # As kit.engines.schedule has it: drawn for one round, turned round for the next.
        turned = np.repeat(random.random(LAUNCHES_FOR_VERDICT // 2) < 0.5, 2)  # noqa: PLR2004 - a coin
        turned[1::2] ^= True
        pairs[turned] = pairs[turned, ::-1]
        slowed = pairs[:, 0] + math.log1p(slowdown_pct / 100)
        yield Question(_launches(model, slowed, random), _launches(model, pairs[:, 1], random), paired=True)


def _levels(model: Model, launches: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Logarithms of launch medians, one after the other in time (an AR(1) series)."""
    fresh = random.standard_normal(launches)
    kept = math.sqrt(1 - model.resemblance**2)
    levels = np.empty(launches)
    levels[0] = fresh[0]
    for i in range(1, launches):
        levels[i] = model.resemblance * levels[i - 1] + kept * fresh[i]
    return math.log(model.median_ns) + model.launch_spread * levels


def _launches(model: Model, levels: NDArray[np.float64], random: np.random.Generator) -> list[MeasuredLaunch]:
    launches = []
    for number, level in enumerate(levels):
        shape = model.shapes[random.integers(len(model.shapes))]
        begin = int(random.integers(max(1, shape.size - STEPS_MAX + 1)))
        median_ns = math.exp(level)
        # The median is the level's, not that of the steps shown: how far those stray is part of the spread seen.
        launches.append(MeasuredLaunch(number, median_ns, median_ns * shape[begin : begin + STEPS_MAX]))
    return launches
