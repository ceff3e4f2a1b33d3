"""A comparison as a report: a table a group, its sentences, what differs between runs, and what else has to be said."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING

from kit.compare.explaining_facts import FACTS
from kit.compare.rows import Comparison, GroupRows, Headline, Mismatch, Note, Row
from kit.profile.cell import OWN
from kit.profile.reason import Value
from kit.report.answer import answer
from kit.report.columns import MARKS, NAME_MAX, SHARED, SUSTAINED, VERDICT_STYLES, WARM, Shown, columns_of
from kit.report.comparison_records import cases, records
from kit.report.conclusions import group_sentences
from kit.report.plain import one_line
from kit.report.platforms import device_words, platform_lines, platform_tables
from kit.report.quantity import by_name, counted, moment, several
from kit.report.sentences import FINDINGS, REMEDIES, filled, sentence
from kit.report.table import Cell, Column, Explanation, Report, Table, plain_table
from kit.workloads.operations import OPERATIONS, is_operation

if TYPE_CHECKING:
    from kit.audit.finding import Finding

NAME = "kit compare"
HINT = "kit compare {file} --wide for intervals, p95, CPU, phases · kit show {file} for every launch"
# A longer name, of a cell and whose it is, may be cut in each row: a letter stands for the side.
LABELLED_MAX = 18
ROWS_MAX = 40
EXPLANATIONS_MAX = 3
# The machine's, the container's or the board's, not a member's: said once, whichever cells have them.
MACHINE_WIDE = ("throttled", "contention", "device_throttled", "device_shared")
# A note of the table says it already, of all groups.
IN_NOTES = ("cycles_left_out",)
# Codes of notes, or their beginnings, that stand in one line: nothing is wrong.
QUIET = ("parity_agrees", "parity_equal", "energy_")
MARKED = dict((WARM, SHARED, SUSTAINED))
# More notes of one kind than these are a list nobody reads.
ALIKE_MAX = 6
# A list with more sizes is nothing to read.
SIZES_MAX = 6
DATA_NAMES = {"mnist": "MNIST", "uci_har": "UCI-HAR"}
# What makes a platform, and stands in its headline.
OF_A_PLATFORM = ("cpu", "accelerator", "sensor")
GRADES = {"incompatible": "not comparable", "warns": "could explain a difference"}

Titles = Mapping[str, str]  # backend -> as people write it


def comparison_report(
    comparison: Comparison,
    titles: Titles,
    *,
    wide: bool = False,
    allowed_pct: float | None = None,
    file: Path | None = None,
) -> Report:
    """Return the report; `allowed_pct` is that of `--fail-if-slower`, `file` the profile that its hint names."""
    path = "FILE" if file is None else shlex.quote(str(file))
    tables_of = platform_tables if comparison.kind == "platforms" else _tables
    return Report(
        name=NAME,
        headline=headline(comparison, titles),
        tables=[
            table
            for groups in _of_like_tasks(comparison, wide=wide)
            for table in tables_of(comparison, groups, titles, wide)
        ],
        notes=[*note_lines(comparison), *mismatch_lines(comparison)],
        marks={MARKED[note.what.code]: note_line(note) for note in comparison.notes if note.what.code in MARKED},
        hint=HINT.format(file=path) if comparison.kind == "cells" else "",
        hint_is_path=file is not None,
        records=records(comparison),
        cases=cases(comparison, allowed_pct),
        properties={"rule": comparison.rule} | ({} if allowed_pct is None else {"allowed": f"{allowed_pct:g} %"}),
        document=comparison,
        is_wide=wide,
        rows_max=ROWS_MAX,
    )


def why_report(comparison: Comparison, allowed_pct: float | None = None) -> Report:
    """Return the rows' answers, then every difference between the runs, with its effect."""
    answers = [
        [" · ".join(group.title), row.name, answer(row)]
        for group in comparison.groups
        for row in group.rows
        if not row.is_baseline
    ]
    differences = []
    for mismatch in comparison.mismatches:
        differences.append([mismatch.grade, mismatch_words(mismatch)])
        effect = FACTS[mismatch.kind].effect if mismatch.kind in FACTS else ""
        differences += [["", effect]] if effect else []
    alike = [] if differences else ["As far as recorded, machine, software and settings are the same."]
    tables = [
        plain_table("Answers", ("group", "row", "against the baseline"), answers, left=3),
        plain_table("Differences", ("grade", "what differs, and its effect"), differences)._replace(sentences=alike),
    ]
    usual = comparison_report(comparison, {}, allowed_pct=allowed_pct)
    records = [
        {name: getattr(mismatch, name) for name in ("grade", "kind", "name")}
        | {"value": value, "profiles": " ".join(labels)}
        for mismatch in comparison.mismatches
        for value, labels in mismatch.values
    ]
    differing = {f"difference.{place:02}": line for place, line in enumerate(mismatch_lines(comparison), 1)}
    properties = {**usual.properties, **differing}
    return usual._replace(
        headline=[], tables=tables, notes=note_lines(comparison), rows_max=None, properties=properties, records=records
    )


def _of_like_tasks(comparison: Comparison, *, wide: bool) -> list[list[GroupRows]]:
    """Return the groups of steps, those of fits and those of operations, which have other columns."""
    operations = [group for group in comparison.groups if is_operation(group.rows[0].cell)]
    networks = [group for group in comparison.groups if group not in operations]
    fits = [group for group in networks if any(row.cell.task == "fit" for row in group.rows)]
    steps = [group for group in networks if group not in fits]
    # Beside networks they are what these are held against, and only `wide` does that.
    return [groups for groups in (steps, fits, operations if wide or not networks else []) if groups]


def _tables(comparison: Comparison, groups: Sequence[GroupRows], titles: Titles, wide: bool) -> list[Table]:
    between = columns_of(groups, by=comparison.by, wide=wide)
    columns = [
        Column("", right=False, width_max=NAME_MAX),
        *(Column(column.title, right=column is not MARKS, hides=column.hides) for column in between),
    ]
    short = _letters(comparison)
    tables = []
    for group in groups:
        baseline = one_line(short.get(group.baseline or "", group.baseline or ""))
        against = f"against {baseline}" if group.baseline and len(group.rows) > 1 else ""
        tables.append(
            Table(
                title=" · ".join(map(one_line, group.title)),
                columns=[*columns, Column(against, right=False, folds=True)],
                rows=[_cells(row, between, short) for row in group.rows],
                sentences=group_sentences(group, titles),
                explanations=explanations(group, whole=wide),
            )
        )
    return tables


def _letters(comparison: Comparison) -> dict[str, str]:
    """Return a letter for each side of several runs, where a label is too long to stand in rows."""
    labels = [head.label for head in comparison.headlines]
    longest = max((len(row.name) for group in comparison.groups for row in group.rows), default=0)
    if comparison.kind != "runs" or longest <= LABELLED_MAX or len(labels) > len(ascii_uppercase):
        return {}
    return dict(zip(labels, ascii_uppercase, strict=False))


def _cells(row: Row, columns: Sequence[Shown], short: Mapping[str, str]) -> list[Cell]:
    style = "red" if row.numbers.step_ns is None else ""
    verdict = style if row.versus is None else VERDICT_STYLES[row.versus.verdict]
    name = f"{row.member} · {short[row.side]}" if row.side in short else row.name
    words = [one_line(name), *(column.show(row) for column in columns)]
    return [*(Cell(shown, style) for shown in words), Cell(answer(row), verdict)]


def headline(comparison: Comparison, titles: Titles) -> list[str]:
    """Return what was compared: of one run two lines, of several a line a side."""
    rule = f"rule {comparison.rule}"
    if comparison.kind == "runs":
        short = _letters(comparison)
        return [*(_run_line(head, short) for head in comparison.headlines[:SIZES_MAX]), rule]
    head, *others = comparison.headlines
    axes = {
        axis: list(dict.fromkeys(value for of in comparison.headlines for value in of.axes[axis])) for axis in head.axes
    }
    data = dict.fromkeys(name for of in comparison.headlines for name in of.data)
    frameworks = _counted_or_named([titles.get(name, name) for name in axes["backend"]], "framework")
    are_programs = axes["precision"] == [OWN]
    are_operations = not are_programs and {*axes["workload"]} <= OPERATIONS.keys()
    noun = "program" if are_programs else "operation" if are_operations else "network"
    crossed = [_counted_or_named(axes["workload"], noun), *([] if are_programs else [frameworks])]
    crossed += [] if are_operations else ["+".join(axes["task"])]
    what = [
        " × ".join(crossed) + ("" if others else f" on {'+'.join(axes['device'])}"),
        "" if axes["devices"] == ["1"] else f"{_sizes(axes['devices'])} devices",
        "" if are_operations else f"batch {_sizes(axes['batch'])}",
        ", ".join(precision for precision in axes["precision"] if precision != OWN),
        ", ".join(DATA_NAMES.get(name, name) for name in data),
    ]
    if others:
        suites = dict.fromkeys(name for of in comparison.headlines for name in of.suite.split(" and "))
        what = [" and ".join(suites), *what, f"{counted(len(comparison.headlines), 'platform')} ({comparison.rule})"]
        return [one_line(" · ".join(part for part in what if part)), *platform_lines(comparison.headlines)]
    what = [head.given_label, head.suite, *what, counted(head.rounds, "round")]
    where = [
        f"{' · '.join(device_words(head))}{'' if head.power_sensor else ', no power sensor'}",
        moment(head.created),
        f"kit {head.kit} ({comparison.rule})",
    ]
    return [one_line(" · ".join(part for part in parts if part)) for parts in (what, where)]


def _run_line(head: Headline, short: Mapping[str, str]) -> str:
    rounds = f"{counted(head.rounds, 'round')} of {counted(head.cycles, 'cycle')}"
    where = " · ".join(device_words(head))
    letter = f"{short[head.label]}  " if head.label in short else ""
    return one_line(
        f"{letter}{head.label}: {head.suite} · {where} · {rounds} · {moment(head.created)} · kit {head.kit}"
    )


def _sizes(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= SIZES_MAX else f"{values[0]} to {values[-1]} ({len(values)} sizes)"


def _counted_or_named(names: Sequence[str], noun: str) -> str:
    return names[0] if len(names) == 1 else counted(len(names), noun)


def explanation(finding: Finding, who: str) -> Explanation:
    """Return a finding in words; `who` is the member's name within its group, or how many cells have it."""
    evidence = filled(FINDINGS, finding.code, {"who": who, **finding.values})
    remedy = None if finding.remedy is None else filled(REMEDIES, finding.remedy.code, finding.remedy.values)
    return Explanation(evidence, remedy, f"rule {finding.anchor}")


def explanations(group: GroupRows, *, whole: bool) -> list[Explanation]:
    """Return what explains the group's numbers, gravest first; at most EXPLANATIONS_MAX unless `whole`."""
    names = {row.cell.key: row.name for row in group.rows} | {"": " · ".join(group.title)}
    findings = [
        finding
        for finding in group.findings
        if finding.cell_key in names and finding.code not in (*MACHINE_WIDE, *IN_NOTES)
    ]
    lines = []
    for finding in findings if whole else findings[:EXPLANATIONS_MAX]:
        line = explanation(finding, one_line(names[finding.cell_key]))
        # What is to be tried has been, where a member of this very group is that variant.
        is_tried = any(f"--variant {name}:" in (line.remedy or "") for name in names.values())
        lines.append(line._replace(remedy=None) if is_tried else line)
    return lines


def note_line(note: Note) -> str:
    """Return a note, with its reason."""
    return ": ".join(sentence(part) for part in (note.what, note.because) if part is not None)


def note_lines(comparison: Comparison) -> list[str]:
    """Return what kept members from their CPUs, then the notes but those of marks; parity and energy share a line."""
    by_code: dict[str, list[str]] = {}
    for note in comparison.notes:
        by_code.setdefault(note.what.code, []).append(note_line(note))
    quiet, others = list[str](), list[str]()
    for code, alike in by_code.items():
        if code.startswith(QUIET):
            quiet += alike
        elif code not in MARKED:
            rest = len(alike) - ALIKE_MAX
            others += alike if rest <= 1 else [*alike[:ALIKE_MAX], f"and {rest:,} more of these: --json has all"]
    return [*_machine_lines(comparison), *others, *filter(None, [" · ".join(quiet)])]


def _machine_lines(comparison: Comparison) -> list[str]:
    """Return findings of the machine, each once: with how many cells have it, and the worst of them."""
    cells = {row.cell.key for group in comparison.groups for row in group.rows}
    lines = []
    for code in MACHINE_WIDE:
        findings = [finding for group in comparison.groups for finding in group.findings if finding.code == code]
        if findings:
            who = f"{len({finding.cell_key for finding in findings})} of {counted(len(cells), 'cell')}"
            line = explanation(max(findings, key=lambda finding: finding.rank), who)
            lines.append(f"{line.evidence} {line.remedy}.  {line.more}")
    return lines


def mismatch_lines(comparison: Comparison) -> list[str]:
    """Return what differs between runs: what is incompatible or warns a line each, what is noted in one together."""
    lines = [
        f"{GRADES[mismatch.grade]}: {mismatch_words(mismatch)}"
        for mismatch in comparison.mismatches
        if mismatch.grade in GRADES and not (comparison.kind == "platforms" and mismatch.kind in OF_A_PLATFORM)
    ]
    noted = [mismatch_words(mismatch) for mismatch in comparison.mismatches if mismatch.grade not in GRADES]
    if noted:
        lines.append(f"also differs: {several(noted, '; ')}")
    if not lines and comparison.kind == "runs":
        lines.append("machine, software and settings are the same, as far as recorded")
    return lines


def mismatch_words(mismatch: Mismatch) -> str:
    """Return ``kernel: 6.1.0 (a), 6.6.0 (b, c)``."""
    kind, name = mismatch.kind, mismatch.name
    title = FACTS[kind].title if kind in FACTS else ""
    shown = (title or kind.replace("_", " ")) if name == kind else name
    values = mismatch.values
    if kind == "cpu_flags":
        if min(len(str(value).split()) for value, _ in values) <= 1:  # a hash, as up to schema 2.3
            return f"{shown}: not the same, and not all profiles name them"
        values = _only_here(values)
    return one_line(f"{shown}: {several([f'{by_name(kind, value)} ({several(labels)})' for value, labels in values])}")


def _only_here(values: Sequence[tuple[Value | None, list[str]]]) -> list[tuple[Value | None, list[str]]]:
    """Return, in place of whole lists of CPU features, those of each that not all have."""
    features = [set(str(value).split()) for value, _ in values]
    common = set.intersection(*features)
    return [
        (f"only {several(sorted(known - common))}" if known - common else "none of these", labels)
        for known, (_, labels) in zip(features, values, strict=True)
    ]
