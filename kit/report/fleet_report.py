"""A fleet as a report: a row a node, slowest first, with why it stands out, and which nodes gave no profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

from kit.compare.fleet_nodes import Absent, Fleet, Node
from kit.documentation import page
from kit.report.audit_report import evidence
from kit.report.headline_and_notes import mismatch_words
from kit.report.reasons_in_words import sentence
from kit.report.report_table import Case, Column, Report, Table, TableCell, record_field, record_of
from kit.report.values_in_words import NONE, counted, one_line, several

# Text lists at most this many nodes that are like the others; other formats list all.
ROWS_MAX = 30
SUSPECT = "suspect"
# By the verdict; of a node that stands out, but not by two profiles and more.
WORDS = {"slower": "slow", "faster": "fast", "same": "like the others", "unresolved": "unresolved"}
ONCE_WORDS = {"slower": "slow once", "faster": "fast once"}
ABSENT, FASTER = "no profile", "faster"
# What the headline counts, and the style of some words.
STAND_OUT = ("slow", SUSPECT, ONCE_WORDS["slower"], "fast", ONCE_WORDS["faster"], FASTER)
STYLES = {"slow": "red", "fast": "green", SUSPECT: "yellow", ABSENT: "yellow"}
# More in one cell are a list nobody reads: JSON has all.
REASONS_MAX = 4


def fleet_report(fleet: Fleet) -> Report:
    """Return the report."""
    apart = [node for node in fleet.nodes if node.stands_out or node.failed]
    shown = [*apart, *[node for node in fleet.nodes if node not in apart][: max(0, ROWS_MAX - len(apart))]]
    names = {node.name for node in fleet.nodes}
    absent = [node for node in fleet.absent if node.name not in names]
    unfinished = [node for node in fleet.absent if node.name in names]
    counts = Counter(map(_word, fleet.nodes))
    parts = [counted(len(fleet.nodes), "node"), counted(sum(len(node.profiles) for node in fleet.nodes), "profile")]
    nothing = "nothing to compare: no two nodes have the same hardware and a common cell"
    parts += [f"{counts[word]} {word}" for word in STAND_OUT if counts[word]] or [
        "none stands out" if fleet.is_compared else nothing
    ]
    failed = sum(bool(node.failed) for node in fleet.nodes)
    others = {"without a profile": len(absent), "unfinished": len(unfinished), "with failed cells": failed}
    parts += [f"{count} {what}" for what, count in others.items() if count]
    columns = [column for column in COLUMNS if column.title]
    listed: list[Node | Absent] = [*shown, *absent]
    every: list[Node | Absent] = [*fleet.nodes, *fleet.absent]
    rows = [[TableCell(column.read(node) or "", _style(column, node)) for column in columns] for node in listed]
    return Report(
        name="kit fleet",
        headline=[" · ".join(parts)],
        tables=[Table("", columns, rows)] if rows else [],
        notes=_notes(fleet, unfinished, len(shown)),
        records=(records := [record_of(COLUMNS, node) for node in (*fleet.nodes, *absent)]),
        cases=[_case(node, names) for node in every],
        labels=[{"node": str(record["node"])} for record in records],
        document=fleet,
    )


def _word(node: Node | Absent) -> str:
    if isinstance(node, Absent) or node.is_suspect:
        return ABSENT if isinstance(node, Absent) else SUSPECT
    verdict = node.versus.verdict
    if node.versus.is_spread_assumed and verdict == "faster":
        return FASTER  # of so few nodes the others may be the slow ones
    return (ONCE_WORDS if node.stands_out and not node.said_again else WORDS)[verdict]


def _ratio(node: Node | Absent) -> str:
    versus = None if isinstance(node, Absent) else node.versus
    if versus is None or versus.ratio is None or versus.low is None or versus.high is None:
        return NONE
    return f"× {versus.ratio:.3f} [{versus.low:.3f}, {versus.high:.3f}]"


def _why(node: Node | Absent) -> str:
    """Return what the audit finds there and not elsewhere, and what differs; of a node like the others nothing."""
    if isinstance(node, Absent):
        return one_line(sentence(node.reason))
    words = [] if node.failure is None else [f"{counted(node.failed, 'cell')} failed: {sentence(node.failure)}"]
    if node.nodes_of_kind == 1:
        model, cpus, *boards = node.kind
        listed = [f"{count} × {board}" for board, count in Counter(boards).items()]
        words.append(f"the only node with this hardware: {', '.join([f'{model}, {cpus} CPUs', *listed])}")
    elif node.stands_out:
        words += [evidence(finding, "its cells").rstrip(".") for finding in node.findings]
        words += [mismatch_words(mismatch) for mismatch in node.differs]
        words = [several(words[:REASONS_MAX], "; ")] if words else ["no recorded fact differs from the other nodes"]
    return one_line("; ".join(words))


def _notes(fleet: Fleet, unfinished: Sequence[Absent], shown: int) -> list[str]:
    suspects = [one_line(node.name) for node in fleet.nodes if node.is_suspect]
    notes = [f"measure {several(suspects)} again and give both profiles: the second decides"] if suspects else []
    notes += [f"{one_line(node.name)} is unfinished: {_why(node)}" for node in unfinished]
    known = {node.name for node in unfinished}
    partial = [one_line(label) for node in fleet.nodes if node.name not in known for label in node.interrupted]
    if partial:
        notes.append(f"interrupted, so only finished rounds count: {several(partial)}")
    if (rest := len(fleet.nodes) - shown) > 0:
        notes.append(f"{rest:,} more nodes are like the others or unresolved; --format csv lists all")
    if any(node.versus.is_spread_assumed for node in fleet.nodes):
        notes.append(f"fewer than four nodes: how much nodes differ is assumed ({page('how-to/cluster.md')})")
    if fleet.repeated:
        notes.append(f"left out as copies: {several([one_line(label) for label in fleet.repeated])}")
    return notes


def _numbers(node: Node | Absent) -> dict[str, object]:
    if isinstance(node, Absent):
        return {"measured": 0}
    judged = {name: getattr(node.versus, name) for name in ("ratio", "low", "high", "p_adjusted")}
    counts = {"profiles": len(node.profiles), "cells": node.cells, "failed": node.failed}
    return {"slow": int(node.is_slow), "suspect": int(node.is_suspect), "measured": 1} | judged | counts


COLUMNS = (
    Column("node", lambda node: one_line(node.name), "node", right=False, width_max=40),
    Column("step, others = 1", _ratio),
    Column("verdict", _word, "verdict", right=False),
    record_field("", _numbers),
    Column("why", _why, "why", right=False, folds=True),
)


def _style(column: Column, node: Node | Absent) -> str:
    return STYLES.get(_word(node), "dim") if column.name == "verdict" else ""


def _case(node: Node | Absent, measured: Set[str]) -> Case:
    """Return the case of a node; one that is not there is unfinished if it is among those that were measured."""
    case = Case(node.name, "kit fleet", words=_why(node))
    if isinstance(node, Absent):
        return case._replace(outcome="error", kind="unfinished" if node.name in measured else ABSENT)
    words = f"{_ratio(node)} the step of the others. {case.words}".strip()
    if node.is_slow:
        return case._replace(outcome="failed", words=words, kind="slow")
    if node.failed:
        return case._replace(outcome="error", words=words, kind="failed cells")
    if node.is_suspect:
        return case._replace(outcome="skipped", words=f"{words}. A second profile will decide")
    return case._replace(output=words)
