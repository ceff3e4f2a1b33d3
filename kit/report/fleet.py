"""A fleet as a report: a row a node, slowest first, with why it stands out, and which nodes gave no profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from kit.compare.fleet import STANDS_OUT, Absent, Fleet, Node
from kit.report.audit import evidence
from kit.report.comparison import mismatch_words
from kit.report.plain import NONE, one_line
from kit.report.quantity import counted, several
from kit.report.sentences import sentence
from kit.report.table import Case, Cell, Column, Report, Table

# Of nodes like the others so many are listed; other formats have all.
ROWS_MAX = 30
WORDS = {"slower": "slow", "faster": "fast", "same": "like the others", "unresolved": "unresolved"}
# Of a node that stands out, but not by two profiles and more.
ONCE_WORDS = {"slower": "slow once", "faster": "fast once"}
SUSPECT = "suspect"
STYLES = {"slow": "red", "fast": "green", SUSPECT: "yellow"}
# More in one cell are a list nobody reads: JSON has all.
REASONS_MAX = 4


def fleet_report(fleet: Fleet) -> Report:
    """Return the report."""
    columns = [
        Column("node", right=False, width_max=40),
        Column("step, others = 1"),
        Column("verdict", right=False),
        Column("why", right=False, folds=True),
    ]
    apart = [node for node in fleet.nodes if node.versus.verdict in STANDS_OUT or node.failed]
    shown = [*apart, *[node for node in fleet.nodes if node not in apart][: max(0, ROWS_MAX - len(apart))]]
    names = {node.name for node in fleet.nodes}
    absent = [node for node in fleet.absent if node.name not in names]
    rows = [*map(_row, shown), *map(_absent_row, absent)]
    return Report(
        name="kit fleet",
        headline=[_headline(fleet)],
        tables=[Table("", columns, rows)] if rows else [],
        notes=_notes(fleet, len(shown)),
        records=[*map(_record, fleet.nodes), *map(_absent_record, absent)],
        cases=[*map(_case, fleet.nodes), *(_absent_case(node, names) for node in fleet.absent)],
        labels=["node"],
        document=fleet,
    )


def _headline(fleet: Fleet) -> str:
    counts = Counter(map(_word, fleet.nodes))
    profiles = sum(len(node.profiles) for node in fleet.nodes)
    parts = [f"{counted(len(fleet.nodes), 'node')}", counted(profiles, "profile")]
    standing = ("slow", SUSPECT, ONCE_WORDS["slower"], "fast", ONCE_WORDS["faster"])
    alone = (
        "none stands out"
        if fleet.is_compared
        else "nothing to compare: no two nodes have the same hardware and a common cell"
    )
    parts += [f"{counts[word]} {word}" for word in standing if counts[word]] or [alone]
    names = {node.name for node in fleet.nodes}
    unfinished = sum(node.name in names for node in fleet.absent)
    parts += [
        f"{count} {what}"
        for count, what in (
            (len(fleet.absent) - unfinished, "without a profile"),
            (unfinished, "unfinished"),
            (sum(bool(node.failed) for node in fleet.nodes), "with failed cells"),
        )
        if count
    ]
    return " · ".join(parts)


def _word(node: Node) -> str:
    verdict = node.versus.verdict
    if node.is_suspect:
        return SUSPECT
    return ONCE_WORDS[verdict] if verdict in STANDS_OUT and not node.said_again else WORDS[verdict]


def _row(node: Node) -> list[Cell]:
    return [
        Cell(one_line(node.name)),
        Cell(_ratio(node)),
        Cell(_word(node), STYLES.get(_word(node), "dim")),
        Cell(_reasons(node)),
    ]


def _absent_row(absent: Absent) -> list[Cell]:
    return [Cell(one_line(absent.name)), Cell(NONE), Cell("no profile", "yellow"), Cell(_why(absent))]


def _ratio(node: Node) -> str:
    versus = node.versus
    if versus.ratio is None or versus.low is None or versus.high is None:
        return NONE
    return f"× {versus.ratio:.3f} [{versus.low:.3f}, {versus.high:.3f}]"


def _reasons(node: Node) -> str:
    """Return what the audit finds there and not elsewhere, and what differs; of a node like the others nothing."""
    failed = [] if node.failure is None else [f"{counted(node.failed, 'cell')} failed: {sentence(node.failure)}"]
    if node.nodes_of_kind == 1:
        model, cpus, *boards = node.kind
        listed = [f"{count} × {board}" for board, count in Counter(boards).items()]
        alone = f"the only node with this hardware: {', '.join([f'{model}, {cpus} CPUs', *listed])}"
        return one_line("; ".join([*failed, alone]))
    if node.versus.verdict not in STANDS_OUT:
        return one_line("; ".join(failed))
    words = [*failed]
    words += [evidence(finding, "its cells").rstrip(".") for finding in node.findings]
    words += [mismatch_words(mismatch) for mismatch in node.differs]
    return one_line(several(words[:REASONS_MAX], "; ")) or "no recorded fact differs from the other nodes"


def _why(absent: Absent) -> str:
    return one_line(sentence(absent.reason))


def _notes(fleet: Fleet, shown: int) -> list[str]:
    names = {node.name for node in fleet.nodes}
    suspects = [one_line(node.name) for node in fleet.nodes if node.is_suspect]
    notes = [f"measure {several(suspects)} again and give both profiles: the second decides"] if suspects else []
    notes += [f"{one_line(node.name)} is unfinished: {_why(node)}" for node in fleet.absent if node.name in names]
    known = {node.name for node in fleet.absent}  # to be unfinished, and why
    partial = [label for node in fleet.nodes if node.name not in known for label in node.interrupted]
    if partial:
        notes.append(f"interrupted, so only finished rounds count: {several([one_line(label) for label in partial])}")
    if (rest := len(fleet.nodes) - shown) > 0:
        notes.append(f"{rest:,} more nodes are like the others or unresolved; --format csv lists all")
    if any(node.versus.is_spread_assumed for node in fleet.nodes):
        notes.append("fewer than four nodes: how much nodes differ is assumed (docs/how-to/cluster.md)")
    if fleet.repeated:
        notes.append(f"left out as copies: {several([one_line(label) for label in fleet.repeated])}")
    return notes


def _record(node: Node) -> dict[str, object]:
    versus = node.versus
    return {
        "node": one_line(node.name),
        "verdict": _word(node),
        "slow": int(node.is_slow),
        "suspect": int(node.is_suspect),
        "measured": 1,
        "ratio": versus.ratio,
        "low": versus.low,
        "high": versus.high,
        "p_adjusted": versus.p_adjusted,
        "profiles": len(node.profiles),
        "cells": node.cells,
        "failed": node.failed,
        "why": _reasons(node),
    }


def _absent_record(absent: Absent) -> dict[str, object]:
    return {"node": one_line(absent.name), "verdict": "no profile", "measured": 0, "why": _why(absent)}


def _case(node: Node) -> Case:
    words = f"{_ratio(node)} the step of the others. {_reasons(node)}".strip()
    if node.is_slow:
        return Case(node.name, "kit fleet", "failed", words, "slow")
    if node.failed:
        return Case(node.name, "kit fleet", "error", words, "failed cells")
    if node.is_suspect:
        return Case(node.name, "kit fleet", "skipped", f"{words}. A second profile will decide")
    return Case(node.name, "kit fleet", output=words)


def _absent_case(absent: Absent, names: Container[str]) -> Case:
    return Case(absent.name, "kit fleet", "error", _why(absent), "unfinished" if absent.name in names else "no profile")
