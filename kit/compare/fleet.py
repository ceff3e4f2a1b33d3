"""The nodes of a fleet from their profiles: cells that they share, a verdict on each, and what differs in its facts.

Nodes are judged among those of their kind: model and number of CPUs, and models of boards.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from kit.compare.clean_cycles import count_cycles
from kit.compare.explaining_facts import Facts, facts_of
from kit.compare.launch_arrays import block_arrays, launch_time_ns
from kit.compare.rows import Mismatch
from kit.compare.sample import RunTimes, first_failure
from kit.printable import printable_line
from kit.profile.facts import fact_of, kind_of
from kit.profile.reason import Reason, Value
from kit.profile.schema import Profile
from kit.stats.estimate import TIME_WORDS, Estimate, over
from kit.stats.fleet import cell_weights, judge_fleet, said_again
from kit.stats.runs import RunLevel

if TYPE_CHECKING:
    from kit.audit.finding import Finding

FLEET_SCHEMA = "steadykit.fleet/1.1"
STANDS_OUT = TIME_WORDS


class NodeRun(NamedTuple):
    """What is kept of a profile: of thousands little is."""

    label: str  # of its file
    name: str  # that the run was given; empty: none
    host: str  # what tells machines apart; empty: nothing does
    id: str
    kind: tuple[str, ...]  # of its hardware
    times: RunTimes
    rounds: dict[str, dict[int, float]]  # key of a cell -> logarithm of its step in each round
    interrupted: bool  # it lacks rounds
    failed: dict[str, Reason]  # key of a cell without a number -> why
    facts: Facts


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
    identity, rounds = profile.identity, defaultdict[str, dict[int, list[float]]](dict)
    counted = count_cycles(profile)
    launches = (launch for result in counted.profile.cells for launch in counted.figure_launches(result))
    for launch in (launch for launch in launches if launch.gave_number):
        step_ns = launch_time_ns(block_arrays(launch))
        if step_ns > 0:
            rounds[launch.cell_key].setdefault(launch.round, []).append(math.log(step_ns))
    # A container's host name is drawn anew for each.
    is_drawn = identity.text("container.engine") is not None and bool(profile.label)
    return NodeRun(
        label=label,
        name=printable_line(profile.label),
        host="" if is_drawn else identity.text("hostname_sha256") or "",
        id=profile.id,
        kind=identity.machine_kind,
        times=RunTimes.of(profile),
        rounds={key: {number: float(np.mean(logs)) for number, logs in known.items()} for key, known in rounds.items()},
        interrupted=profile.interrupted,
        failed={
            result.key: why
            for result in profile.cells
            if result.key not in rounds and (why := first_failure(result.launches)) is not None
        },
        facts=facts_of(profile),
    )


def judge(runs: Iterable[NodeRun], absent: Sequence[Absent] = ()) -> Fleet:
    """Return each node against the others of its kind, and which gave no profile."""
    seen, repeated = set[str](), list[str]()
    nodes: dict[tuple[object, ...], list[NodeRun]] = {}
    for run in runs:
        if run.id in seen:
            repeated.append(run.label)
            continue
        seen.add(run.id)
        # Virtual machines of a site may all have one host name.
        nodes.setdefault((run.name, run.host, run.kind), []).append(run)
    kinds = defaultdict[tuple[str, ...], list[list[NodeRun]]](list)
    for of_node in nodes.values():
        kinds[of_node[0].kind].append(of_node)
    names = Counter(of_node[0].name for of_node in nodes.values())
    judged = [
        node for kind in kinds.values() for node in _judged(kind, len(nodes) if len(kinds) > 1 else len(kind), names)
    ]
    slowest_first = sorted(
        judged, key=lambda node: -(node.versus.mean_log if node.versus.count and node.versus.ratio else 0.0)
    )
    return Fleet(nodes=slowest_first, absent=list(absent), repeated=repeated)


def _judged(nodes: Sequence[list[NodeRun]], comparisons: int, names: Counter[str]) -> Iterable[Node]:
    """Yield the nodes of one kind."""
    having = Counter(key for of_node in nodes for key in dict.fromkeys(key for run in of_node for key in run.rounds))
    shared = {key: index for index, key in enumerate(key for key, count in having.items() if count > 1)}
    known = iter(_run_levels(nodes, shared))
    of_nodes = [[level for _ in of_node if (level := next(known)) is not None] for of_node in nodes]
    with_level = [levels_of for levels_of in of_nodes if levels_of]
    judged = judge_fleet(with_level, comparisons)
    verdicts = iter(zip(judged, said_again(with_level, judged), strict=True))
    for of_node, of_levels in zip(nodes, of_nodes, strict=True):
        given, label = of_node[0].name, of_node[0].label
        versus, again = next(verdicts) if of_levels else (Estimate(), None)
        others = [other[-1] for other in nodes if other is not of_node]
        failed = {key: why for run in of_node for key, why in run.failed.items()}
        yield Node(
            name=label if not given else given if names[given] == 1 else f"{given} ({label})",
            profiles=[run.label for run in of_node],
            versus=versus,
            said_again=again,
            cells=len({key for run in of_node for key in run.rounds if key in shared}),
            kind=list(of_node[0].kind),
            nodes_of_kind=len(nodes),
            interrupted=[run.label for run in of_node if run.interrupted],
            failed=len(failed),
            failure=next(iter(failed.values()), None),
            differs=_differing(of_node[-1], others) if versus.verdict in STANDS_OUT else [],
        )


def _run_levels(nodes: Sequence[Sequence[NodeRun]], shared: Mapping[str, int]) -> list[RunLevel | None]:
    """Return how far each run is from the usual over the shared cells, with the error that its rounds show.

    Args:
        nodes: the runs of each.
        shared: the cells that two nodes and more have a number of -> index.

    Returns:
        None: the run has none of these cells.
    """
    runs = [run for of_node in nodes for run in of_node]
    logs = np.full((len(runs), len(shared)), np.nan)
    for row, run in zip(logs, runs, strict=True):
        for key in run.rounds.keys() & shared.keys():
            row[shared[key]] = fmean(run.rounds[key].values())
    logs -= np.nanmedian(logs, axis=0) if shared else np.zeros(0)
    of_nodes = np.split(logs, np.cumsum([len(of_node) for of_node in nodes])[:-1])
    with np.errstate(invalid="ignore"):  # nan: no run of the node has the cell
        means = [np.nansum(of_node, axis=0) / np.isfinite(of_node).sum(axis=0) for of_node in of_nodes]
    weights = cell_weights(np.array(means))
    levels: list[RunLevel | None] = []
    for row, run in zip(logs, runs, strict=True):
        has_cell = np.isfinite(row)
        from_mean = defaultdict[int, list[tuple[float, float]]](list)
        for key, known in run.rounds.items():
            mean = fmean(known.values())
            for number, log in known.items() if key in shared else ():
                from_mean[number].append((weights[shared[key]], log - mean))
        by_round = [sum(w * log for w, log in pairs) / sum(w for w, _ in pairs) for pairs in from_mean.values()]
        spread, times = over(by_round), run.times
        level = float(np.average(row[has_cell], weights=weights[has_cell])) if has_cell.any() else 0.0
        se = spread.se_log if spread.has_interval else None
        known_level = RunLevel(level, se, len(by_round), begin_s=times.begin_s, end_s=times.end_s)
        levels.append(known_level if has_cell.any() else None)
    return levels


def _differing(node: NodeRun, others: Sequence[NodeRun]) -> list[Mismatch]:
    """Return the facts that may change a number, and in which a node is not as most of the others; theirs first."""
    differs = []
    for name in dict.fromkeys(name for run in (node, *others) for name in run.facts):
        fact, value = fact_of(name), node.facts.get(name)
        if fact.grade is None or fact.grade == "noted" or (fact.is_optional and name not in node.facts):
            continue
        others_values = [run.facts.get(name) for run in others]
        readings = [reading for reading in others_values if isinstance(reading, int | float)]
        usual: Value | None = None
        if fact.negligible and 2 * len(readings) > len(others_values):
            usual, is_usual = median(readings), True
        else:
            # The value of most nodes; there may be none.
            usual, holders = Counter(others_values).most_common(1)[0] if others_values else (None, 0)
            is_usual = 2 * holders > len(others_values)
        is_near = isinstance(value, int | float) and isinstance(usual, int | float)
        if is_usual and value != usual and not (is_near and abs(value - usual) <= fact.negligible):  # type: ignore[operator]
            values: list[tuple[Value | None, list[str]]] = [(usual, ["others"]), (value, [node.label])]
            differs.append(Mismatch(kind=kind_of(name)[0], name=name, grade=fact.grade, values=values))
    return differs
