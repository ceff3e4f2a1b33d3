"""Which nodes of a fleet are slow or fast: each against the others, by how much nodes differ among themselves.

The node that stands out most is set aside, then the next of the rest, so that several slow ones do not hide each other
(generalized extreme Studentized deviate, Rosner 1983, 10.1080/00401706.1983.10487848). The last step that is beyond
chance names its node and all before it. Whether a second measurement of such a node says the same, `said_again` tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, stdtr

from kit.stats.difference import Difference
from kit.stats.runs import RunLevel, over_runs
from kit.stats.verdict import ALPHA, SMALLEST_DIFFERENCE, Versus, verdict_of, versus_of

# Fewer do not show how much nodes differ: that is assumed then, as of two runs.
NODES_FOR_SPREAD = 4
# Of a fleet that may stand out: of more there is no telling which part is the usual one.
SHARE_MAX = 4
# Fewer do not show how much a cell scatters: what a slow one is slow by would count as that.
NODES_TO_WEIGH = 20
# Of the cells' median spread: a cell that is quieter still does not speak for the whole node.
SPREAD_LEAST = 0.25
# The fleet's spread has that of usual rounds in it. A node's own are noisier where chance alone would seldom do it.
NOISIER_P = 0.001

Floats = NDArray[np.float64]


class _Levels(NamedTuple):
    """Of each node."""

    log: Floats  # mean of its runs
    se: Floats  # the error that their rounds show
    df: Floats  # of that
    of_runs: Floats  # variance that `log` has as its runs differ; 0: no node has several

    def at(self, places: NDArray[np.int64]) -> _Levels:
        """Return those of some nodes."""
        return _Levels(*(values[places] for values in self))


@dataclass(frozen=True)
class _Rest:
    """Each of some nodes against the others of them."""

    difference: Floats  # of the logarithm
    se: Floats
    df: Floats
    p: Floats  # two-sided, of each alone


def cell_weights(logs: Floats) -> Floats:
    """Return what each cell counts: the inverse of its variance over the fleet, where enough runs show that.

    Args:
        logs: of the steps, (nodes, cells), less each cell's median; nan where a node has no number.
    """
    if len(logs) < NODES_TO_WEIGH:
        return np.ones(logs.shape[1])
    spread = np.nanmedian(np.abs(logs), axis=0)
    weights: Floats = 1 / np.maximum(spread, np.median(spread) * SPREAD_LEAST + np.finfo(float).tiny) ** 2
    return weights


def judge_fleet(nodes: Sequence[Sequence[RunLevel]], comparisons: int | None = None) -> list[Versus]:
    """Return what the runs say of each node against the others; in one fleet of twenty alike a node is named by chance.

    Args:
        nodes: the runs of each, one and more; of one kind of hardware.
        comparisons: nodes that are judged in all, where other kinds are judged, too; null: these.
    """
    count = comparisons or len(nodes)
    if len(nodes) < NODES_FOR_SPREAD:
        return [_of_few(nodes, place, count) for place in range(len(nodes))]
    levels = _node_levels(nodes)
    named = _standing_out(levels, count)
    core = np.setdiff1d(np.arange(len(nodes)), list(named))
    rest, level = _against_rest(levels.at(core)), 1 - ALPHA * max(1, len(named)) / count
    judged: list[Versus] = []
    places = {place: at for at, place in enumerate(core.tolist())}
    for place in range(len(nodes)):
        if place in places:
            at, p = places[place], min(1.0, float(rest.p[places[place]]) * count * _step_factor(len(named) + 1))
        else:
            beside = np.append(core, place)
            rest_of, at, p = _against_rest(levels.at(beside)), -1, named[place]
        of = rest if place in places else rest_of
        difference = Difference(float(of.difference[at]), float(of.se[at]), float(of.df[at]), len(nodes[place]))
        judged.append(
            versus_of(
                difference,
                verdict_of(difference, place in named and _matters(difference), SMALLEST_DIFFERENCE),
                p,
                comparisons=count,
                level=level if place in named else 1 - ALPHA,
                unit="run",
            )
        )
    return judged


def said_again(nodes: Sequence[Sequence[RunLevel]], judged: Sequence[Versus]) -> list[bool | None]:
    """Return of each node whether it stands out without that run, too, by which it stands out most.

    A single measurement may be far off, and among many nodes one nearly always is where measurements have tails
    (bench_fleet_tails.py). What another one says again is the node's own.

    Args:
        nodes: the runs of each, as they were judged.
        judged: what `judge_fleet` returned.

    Returns:
        None where a node does not stand out or has one run.
    """
    named = {place for place, versus in enumerate(judged) if versus.verdict in ("slower", "faster")}
    tested = [place for place in named if len(nodes[place]) > 1]
    again: list[bool | None] = [None] * len(nodes)
    for place in tested:
        verdict = judged[place].verdict
        runs = sorted(nodes[place], key=lambda run: run.log, reverse=verdict == "faster")[:-1]
        if len(nodes) < NODES_FOR_SPREAD:
            others = [run for other, of_other in enumerate(nodes) if other != place for run in of_other]
            versus = over_runs(runs, others, same_hardware=True, same_host=False)
            difference, p = versus.difference, versus.p_adjusted or 0.0
            assert difference is not None
        else:
            core = [of_other for other, of_other in enumerate(nodes) if other not in named]
            rest = _against_rest(_node_levels([*core, runs]))
            difference = Difference(float(rest.difference[-1]), float(rest.se[-1]), float(rest.df[-1]), len(runs))
            p = float(rest.p[-1])
        is_shown = p * len(tested) <= ALPHA and _matters(difference)
        again[place] = verdict_of(difference, is_shown, SMALLEST_DIFFERENCE) == verdict
    return again


def _of_few(nodes: Sequence[Sequence[RunLevel]], place: int, count: int) -> Versus:
    """Return a node of two or three against the others, by spreads that are assumed unless runs show them."""
    others = [run for other, runs in enumerate(nodes) if other != place for run in runs]
    if not others:
        return Versus(verdict="unresolved", count=len(nodes[place]))
    versus = over_runs(nodes[place], others, same_hardware=True, same_host=False)
    # Of two nodes the one is as much slower as the other is faster: one comparison.
    comparisons = count - 1 if len(nodes) == count == 2 else count  # noqa: PLR2004
    p = min(1.0, (versus.p_adjusted or 0.0) * comparisons)
    difference = versus.difference
    assert difference is not None
    verdict = verdict_of(difference, p <= ALPHA and _matters(difference), SMALLEST_DIFFERENCE)
    return msgspec.structs.replace(versus, verdict=verdict, p_adjusted=p, comparisons=comparisons)


def _matters(difference: Difference) -> bool:
    """Return whether a node is so far off that anybody would repair it."""
    return abs(difference.mean_log) > math.log1p(SMALLEST_DIFFERENCE)


def _node_levels(nodes: Sequence[Sequence[RunLevel]]) -> _Levels:
    """Return the nodes' levels; how much runs of a node differ is taken to be alike in all nodes."""
    log = np.array([np.mean([run.log for run in runs]) for runs in nodes])
    se = np.array([math.sqrt(sum((run.se or 0.0) ** 2 for run in runs)) / len(runs) for runs in nodes])
    df = np.array([max(1.0, sum(run.rounds - 1.0 for run in runs if run.se is not None)) for runs in nodes])
    counts = np.array([len(runs) for runs in nodes])
    squares = sum((run.log - level) ** 2 for runs, level in zip(nodes, log, strict=True) for run in runs)
    of_runs = float(squares) / max(1, int((counts - 1).sum()))
    return _Levels(log, se, df, of_runs / counts)


def _standing_out(levels: _Levels, count: int) -> dict[int, float]:
    """Return the places of the nodes that stand out, each with its adjusted p."""
    left, steps = np.arange(levels.log.size), list[tuple[int, float]]()
    for step in range(1, max(1, levels.log.size // SHARE_MAX) + 1):
        rest = _against_rest(levels.at(left))
        at = int(np.argmin(rest.p))
        # Alike to the last digit, as the most distant ones of a large fleet are: the most distant.
        at = int(np.argmax(np.abs(rest.difference) / rest.se)) if rest.p[at] == 0 else at
        steps.append((int(left[at]), min(1.0, float(rest.p[at]) * max(left.size, count) * _step_factor(step))))
        left = np.delete(left, at)
    last = max((number for number, (_, p) in enumerate(steps, 1) if p <= ALPHA), default=0)
    # What is beyond chance at a later step is so with all before it.
    return {place: min(p for _, p in steps[at:last]) for at, (place, _) in enumerate(steps[:last])}


def _step_factor(step: int) -> int:
    """Return by what the p of a step is multiplied beside the number of nodes: 1/2 + 1/6 + 1/12 + … are 1.

    Without it 6 to 10 % of fleets of 6 to 16 nodes that are all alike had one named, at a nominal 5 %.
    """
    return step * (step + 1)


def _against_rest(levels: _Levels) -> _Rest:
    """Return each node against the others, with their spread.

    To it comes, where a node has fewer runs than the others or noisier rounds, by how much its level is less certain.
    """
    log, se, df, of_runs = levels
    others = log.size - 1
    centred = log - np.median(log)  # no digits are lost to the level itself
    mean = (centred.sum() - centred) / others
    squares = (centred**2).sum() - centred**2 - others * mean**2
    variance = np.maximum(squares, np.finfo(float).tiny) / (others - 1) * (1 + 1 / others)
    variance = variance + np.maximum(0.0, of_runs - (of_runs.sum() - of_runs) / others)
    noisier = (se**2 > variance) & (se**2 > np.median(se**2) * chdtri(df, NOISIER_P) / df)
    variance = variance + np.where(noisier, se**2, 0.0)
    freedom = np.where(noisier, np.minimum(df, others - 1.0), others - 1.0)
    difference, error = centred - mean, np.sqrt(variance)
    return _Rest(difference, error, freedom, 2 * stdtr(freedom, -np.abs(difference) / error))
