"""Which nodes of a fleet are slow or fast: each against the others, by how much nodes differ among themselves.

The node that stands out most is set aside, then the next of the rest, so that several slow ones do not hide each other
(generalized extreme Studentized deviate, Rosner 1983, 10.1080/00401706.1983.10487848). The last step that is beyond
chance names its node and all before it. Whether a second measurement of such a node says the same, `said_again` tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.special import chdtri, stdtr

from kit.stats.estimate import ALPHA, SMALLEST_DIFFERENCE, TIME_WORDS, Estimate, estimate, p_equivalent
from kit.stats.sessions import RunLevel, over_runs

# Fewer do not show how much nodes differ: that is assumed then, as of two runs.
NODES_FOR_SPREAD = 4
# At most one node in this many may stand out: with more, nothing tells which part is the usual one.
SHARE_MAX = 4
# Fewer do not show how much a cell scatters: what a slow one is slow by would count as that.
NODES_TO_WEIGH = 20
# A cell counts as at least this fraction of the cells' median spread: a quieter one does not speak for the whole node.
SPREAD_LEAST = 0.25
# The fleet's spread has that of usual rounds in it. A node's own are noisier where chance alone would seldom do it.
NOISIER_P = 0.001

Floats = NDArray[np.float64]


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


def judge_fleet(nodes: Sequence[Sequence[RunLevel]], comparisons: int | None = None) -> list[Estimate]:
    """Return what the runs say of each node against the others; in one fleet of twenty alike a node is named by chance.

    Args:
        nodes: the runs of each, one and more; of one kind of hardware.
        comparisons: nodes that are judged in all, where other kinds are judged, too; null: these.
    """
    count = comparisons or len(nodes)
    if len(nodes) < NODES_FOR_SPREAD:
        # Two nodes make one comparison: one is as much slower as the other is faster.
        tests = count - 1 if len(nodes) == count == 2 else count  # noqa: PLR2004
        few = [_against(nodes, index, range(len(nodes)), runs) for index, runs in enumerate(nodes)]
        return [_judged(known, known.p() * tests, tests) if known.has_interval else known for known in few]
    levels = _levels(nodes)
    named = _standing_out(levels, count)
    core = np.setdiff1d(np.arange(len(nodes)), list(named))
    rest, selected_level = _against_rest(levels[:, core]), 1 - ALPHA * max(1, len(named)) / count
    judged: list[Estimate] = []
    for index, runs in enumerate(nodes):
        if index in named:
            apart, p = _against_rest(levels[:, [*core, index]])[:, -1], named[index]
            known = _estimate(apart, runs).at_level(selected_level)
        else:
            apart = rest[:, np.searchsorted(core, index)]
            known, p = _estimate(apart, runs), float(apart[3]) * count * _step_factor(len(named) + 1)
        judged.append(_judged(known, p, count, may_stand_out=index in named))
    return judged


def said_again(nodes: Sequence[Sequence[RunLevel]], judged: Sequence[Estimate]) -> list[bool | None]:
    """Return of each node whether it stands out without that run, too, by which it stands out most.

    A single measurement may be far off, and among many nodes one nearly always is where measurements have tails
    (bench_fleet_tails.py). What another one says again is the node's own.

    Args:
        nodes: the runs of each, as they were judged.
        judged: what `judge_fleet` returned.

    Returns:
        None where a node does not stand out or has one run.
    """
    named = {index for index, known in enumerate(judged) if known.verdict in TIME_WORDS}
    others = [index for index in range(len(nodes)) if index not in named or len(nodes) < NODES_FOR_SPREAD]
    tested = [index for index in named if len(nodes[index]) > 1]
    again: list[bool | None] = [None] * len(nodes)
    for index in tested:
        verdict = judged[index].verdict
        runs = sorted(nodes[index], key=lambda run: run.log, reverse=verdict == "faster")[:-1]
        known = _against(nodes, index, others, runs)
        again[index] = _judged(known, known.p() * len(tested), len(tested)).verdict == verdict
    return again


def _against(
    nodes: Sequence[Sequence[RunLevel]], index: int, others: Sequence[int], runs: Sequence[RunLevel]
) -> Estimate:
    """Return some runs of a node against other nodes; of a few nodes the spread is assumed unless runs show it."""
    rest = [nodes[other] for other in others if other != index]
    if len(nodes) >= NODES_FOR_SPREAD:
        return _estimate(_against_rest(_levels([*rest, runs]))[:, -1], runs)
    if not rest:
        return Estimate(count=len(runs))
    return over_runs(runs, [*chain(*rest)], same_hardware=True, same_host=False)


def _estimate(apart: Floats, runs: Sequence[RunLevel]) -> Estimate:
    difference, se, df, _ = map(float, apart)
    return estimate(difference, se, df, len(runs), "run")


def _judged(known: Estimate, p: float, comparisons: int, *, may_stand_out: bool = True) -> Estimate:
    """Return a node's estimate with its verdict; it stands out if it is so far off that anybody would repair it."""
    matters = math.log1p(SMALLEST_DIFFERENCE)
    verdict = "unresolved"
    if p_equivalent(known, matters) <= ALPHA:
        verdict = "same"
    elif may_stand_out and p <= ALPHA and abs(known.mean_log) > matters:
        verdict = TIME_WORDS[known.mean_log > 0]
    return replace(known, verdict=verdict, p_adjusted=min(1.0, p), comparisons=comparisons)


def _levels(nodes: Sequence[Sequence[RunLevel]]) -> Floats:
    """Return four numbers of each node, (4, nodes).

    They are the mean of its runs, the error that their rounds show, the degrees of freedom of that, and the variance
    that the mean has as runs differ: by how much is taken to be alike in all nodes.
    """
    counts = np.array([len(runs) for runs in nodes])
    log = np.array([np.mean([run.log for run in runs]) for runs in nodes])
    se = [math.sqrt(sum((run.se or 0.0) ** 2 for run in runs)) / len(runs) for runs in nodes]
    df = [max(1.0, sum(run.rounds - 1.0 for run in runs if run.se is not None)) for runs in nodes]
    squares = sum((run.log - level) ** 2 for runs, level in zip(nodes, log, strict=True) for run in runs)
    return np.array([log, se, df, float(squares) / max(1, int((counts - 1).sum())) / counts])


def _standing_out(levels: Floats, count: int) -> dict[int, float]:
    """Return the indices of the nodes that stand out, each with its adjusted p."""
    left, steps = np.arange(levels.shape[1]), list[tuple[int, float]]()
    for step in range(1, max(1, levels.shape[1] // SHARE_MAX) + 1):
        difference, se, _, p = _against_rest(levels[:, left])
        # Alike to the last digit, as the most distant ones of a large fleet are: the most distant.
        at = int(np.argmin(p) if p.min() else np.argmax(np.abs(difference) / se))
        steps.append((int(left[at]), min(1.0, float(p[at]) * max(left.size, count) * _step_factor(step))))
        left = np.delete(left, at)
    last = max((number for number, (_, p) in enumerate(steps, 1) if p <= ALPHA), default=0)
    # What is beyond chance at a later step is so with all before it.
    return {index: min(p for _, p in steps[at:last]) for at, (index, _) in enumerate(steps[:last])}


def _step_factor(step: int) -> int:
    """Return by what the p of a step is multiplied beside the number of nodes: 1/2 + 1/6 + 1/12 + … are 1.

    Without it 6 to 10 % of fleets of 6 to 16 nodes that are all alike had one named, at a nominal 5 %.
    """
    return step * (step + 1)


def _against_rest(levels: Floats) -> Floats:
    """Return each node against the others, with their spread, (4, nodes): difference, error, degrees of freedom, p.

    To the spread comes, where a node has fewer runs than the others or noisier rounds, by how much its level is less
    certain. The p are two-sided, of each alone.
    """
    log, se, df, run_variance = levels
    others = log.size - 1
    centred = log - np.median(log)  # no digits are lost to the level itself
    mean = (centred.sum() - centred) / others
    squares = (centred**2).sum() - centred**2 - others * mean**2
    variance = np.maximum(squares, np.finfo(float).tiny) / (others - 1) * (1 + 1 / others)
    variance = variance + np.maximum(0.0, run_variance - (run_variance.sum() - run_variance) / others)
    noisier = (se**2 > variance) & (se**2 > np.median(se**2) * chdtri(df, NOISIER_P) / df)
    error = np.sqrt(variance + np.where(noisier, se**2, 0.0))
    freedom = np.where(noisier, np.minimum(df, others - 1.0), others - 1.0)
    return np.array([centred - mean, error, freedom, 2 * stdtr(freedom, -np.abs(centred - mean) / error)])
