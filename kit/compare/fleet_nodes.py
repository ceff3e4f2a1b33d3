"""The nodes of a fleet from their profiles: cells that they share, a verdict on each, and what differs in its facts.

Nodes are judged among those of their kind: model and number of CPUs, and models of boards.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from kit.compare.metrics import METRICS, round_levels
from kit.compare.rows import Mismatch
from kit.compare.runs import Run, run_of
from kit.profile.facts import fact_of, kind_of
from kit.profile.fields import Reason, Value
from kit.profile.schema import Profile
from kit.stats.estimate import TIME_WORDS, Estimate, over
from kit.stats.fleet_outliers import cell_weights, judge_fleet, said_again
from kit.stats.sessions import RunLevel

if TYPE_CHECKING:
    from kit.audit.finding import Finding

FLEET_SCHEMA = "steadykit.fleet/1.1"


class NodeRun(NamedTuple):
    """What is kept of a profile: of thousands little is."""

    run: Run  # without its launches
    rounds: dict[str, dict[int, float]]  # key of a cell with a number -> logarithm of its step in each round
    kind: tuple[str, ...]  # of its hardware
    host: str  # what tells machines apart; empty: nothing does
    interrupted: bool  # it lacks rounds


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node and what its profiles say of it together; `slower` is slower than the others of its kind."""

    name: str
    profiles: list[str]  # labels
    versus: Estimate
    said_again: bool | None = None  # it stands out without its most distant profile, too; null: it has one, or does not
    cells: int  # that it shares with another node
    kind: list[str]  # model of its CPU, number of CPUs, models of its boards
    nodes_of_kind: int  # nodes of its kind, itself included
    interrupted: list[str] = []  # labels of profiles that lack rounds
    failed: int = 0  # cells without a number there
    failure: Reason | None = None  # of the first of them
    differs: list[Mismatch] = []  # of one that stands out: in what it is not as most others of its kind
    findings: list[Finding] = []  # of the same: what the audit finds of the machine

    @property
    def stands_out(self) -> bool:
        """Whether it is slower or faster than the others, by one measurement or more."""
        return self.versus.verdict in TIME_WORDS

    @property
    def is_slow(self) -> bool:
        """Whether two measurements and more say that it is slower than the others."""
        return self.versus.verdict == "slower" and self.said_again is True

    @property
    def is_suspect(self) -> bool:
        """Whether the only measurement of it says that it is slower: a second one decides."""
        return self.versus.verdict == "slower" and self.said_again is None


class Absent(msgspec.Struct, frozen=True, kw_only=True):
    """A node, or a file, that gave no profile to judge."""

    name: str
    reason: Reason


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes, slowest first."""

    schema: str = FLEET_SCHEMA
    nodes: list[Node]
    absent: list[Absent] = []
    repeated: list[str] = []  # labels of profiles that are a copy of another

    @property
    def is_compared(self) -> bool:
        """Whether any node could be compared with another."""
        return any(node.nodes_of_kind > 1 and node.cells for node in self.nodes)


def reduce_node(label: str, profile: Profile) -> NodeRun:
    """Return what is kept of a profile."""
    run, identity, step = run_of(label, profile), profile.identity, METRICS["step_ns"]
    rounds = {key: known for key, sample in run.samples.items() if (known := round_levels(step, sample))}
    run.drop_launches()
    # A container's host name is drawn anew for each; without a label nothing else tells nodes apart.
    host = identity.host if profile.label else identity.text("hostname_sha256") or ""
    return NodeRun(run, rounds, identity.machine_kind, host, profile.interrupted)


def judge(runs: Iterable[NodeRun], absent: Sequence[Absent] = ()) -> Fleet:
    """Return each node against the others of its kind, and which gave no profile."""
    nodes, kinds = defaultdict[tuple[object, ...], list[NodeRun]](list), defaultdict[object, list[list[NodeRun]]](list)
    seen, repeated = set[str](), list[str]()
    for node in runs:
        if node.run.id in seen:
            repeated.append(node.run.label)
        else:
            # Virtual machines of a site may all have one host name.
            nodes[node.run.given_label, node.host, node.kind].append(node)
        seen.add(node.run.id)
    for node_runs in nodes.values():
        kinds[node_runs[0].kind].append(node_runs)
    names = Counter(given for given, *_ in nodes)
    judged = [node for same_kind in kinds.values() for node in _judged(same_kind, len(nodes), names)]
    slowest_first = sorted(judged, key=lambda node: -node.versus.mean_log if node.versus.ratio else 0.0)
    return Fleet(nodes=slowest_first, absent=list(absent), repeated=repeated)


def _judged(nodes: Sequence[list[NodeRun]], comparisons: int, names: Mapping[object, int]) -> Iterator[Node]:
    """Yield the nodes of one kind; `comparisons`: nodes of all kinds."""
    having = Counter(
        key for node_runs in nodes for key in dict.fromkeys(key for node in node_runs for key in node.rounds)
    )
    shared = [key for key, count in having.items() if count > 1]
    levels = _run_levels(nodes, shared)
    with_level = [node_runs for node_runs in levels if node_runs]
    estimates = judge_fleet(with_level, comparisons)
    verdicts = iter(zip(estimates, said_again(with_level, estimates), strict=True))
    for node_runs, node_levels in zip(nodes, levels, strict=True):
        given, label = node_runs[0].run.given_label, node_runs[0].run.label
        versus, again = next(verdicts) if node_levels else (Estimate(), None)
        failed = {
            key: sample.failure
            for node in node_runs
            for key, sample in node.run.samples.items()
            if key not in node.rounds and sample.failure is not None
        }
        others = [other[-1].run for other in nodes if other is not node_runs]
        yield Node(
            name=label if not given else given if names[given] == 1 else f"{given} ({label})",
            profiles=[node.run.label for node in node_runs],
            versus=versus,
            said_again=again,
            cells=len({key for node in node_runs for key in node.rounds if key in shared}),
            kind=list(node_runs[0].kind),
            nodes_of_kind=len(nodes),
            interrupted=[node.run.label for node in node_runs if node.interrupted],
            failed=len(failed),
            failure=next(iter(failed.values()), None),
            differs=_differing(node_runs[-1].run, others) if versus.verdict in TIME_WORDS else [],
        )


def _run_levels(nodes: Sequence[Sequence[NodeRun]], shared: Sequence[str]) -> list[list[RunLevel]]:
    """Return of each node how far its runs are from the usual over the shared cells, with the error of their rounds.

    Args:
        nodes: the runs of each. A run without any shared cell has no level.
        shared: the cells that two nodes and more have a number of.
    """
    means = [
        [{key: fmean(node.rounds[key].values()) for key in shared if key in node.rounds} for node in node_runs]
        for node_runs in nodes
    ]
    usual = {key: median(run[key] for node_runs in means for run in node_runs if key in run) for key in shared}
    from_usual = [[[run[key] - usual[key] for run in node_runs if key in run] for key in shared] for node_runs in means]
    table = [[fmean(cell_log) if cell_log else math.nan for cell_log in node_runs] for node_runs in from_usual]
    weights = dict(zip(shared, cell_weights(np.array(table)).tolist(), strict=True))
    levels: list[list[RunLevel]] = []
    for node_runs, node_means in zip(nodes, means, strict=True):
        levels.append([])
        for node, mean in ((node, mean) for node, mean in zip(node_runs, node_means, strict=True) if mean):
            by_round = defaultdict[int, list[tuple[float, float]]](list)  # a cell's distance from its mean, its weight
            for key, cell_log in mean.items():
                for number, log in node.rounds[key].items():
                    by_round[number].append((log - cell_log, weights[key]))
            spread, times = over(_weighted(pairs) for pairs in by_round.values()), node.run.times
            log = _weighted([(cell_log - usual[key], weights[key]) for key, cell_log in mean.items()])
            se = spread.se_log if spread.has_interval else None
            levels[-1].append(RunLevel(log, se, len(by_round), begin_s=times.begin_s, end_s=times.end_s))
    return levels


def _weighted(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(value * weight for value, weight in pairs) / sum(weight for _, weight in pairs)


def _differing(node: Run, others: Sequence[Run]) -> list[Mismatch]:
    """Return the facts that may change a number, and in which a node is not as most of the others; theirs first."""
    differs = []
    for name in dict.fromkeys(name for run in (node, *others) for name in run.facts):
        fact, value = fact_of(name), node.facts.get(name)
        if fact.grade is None or fact.grade == "noted" or (fact.is_optional and name not in node.facts):
            continue
        values = [run.facts.get(name) for run in others]
        readings = [reading for reading in values if isinstance(reading, int | float)]
        # The usual value is the median of readings, or else the value of most nodes.
        ((usual, holders),) = Counter(values).most_common(1)
        if fact.negligible and 2 * len(readings) > len(values):
            usual, holders = median(readings), len(readings)
        if isinstance(value, int | float) and isinstance(usual, int | float):
            is_near = abs(value - usual) <= fact.negligible
        else:
            is_near = value == usual
        if 2 * holders > len(values) and not is_near:
            pair: list[tuple[Value | None, list[str]]] = [(usual, ["others"]), (value, [node.label])]
            differs.append(Mismatch(kind=kind_of(name)[0], name=name, grade=fact.grade, values=pair))
    return differs
