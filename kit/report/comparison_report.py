"""A comparison as a report: a table a group, its sentences, what differs between runs, and what else has to be said.

One builder makes the tables of every comparison: a line a row, or a line a member with the sides next to each other.

                 cpu       gpu · H100 80GB HBM3
mlp train         step       step  J/1k  against cpu
  jax          3.18 ms     104 µs  0.51  31 [24, 39] × faster
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kit.compare.metrics import METRICS
from kit.compare.naming import axes_of
from kit.compare.rows import Comparison, GroupRows, Row
from kit.report.comparison_columns import NAME, answer_cell, cell_of, name_cell, row_name, shown_columns, sides_of
from kit.report.headline_and_notes import (
    explanations,
    headline,
    legend,
    machine_wide,
    mismatch_lines,
    mismatch_words,
    note_lines,
)
from kit.report.reasons_in_words import EFFECTS, NOTHING_DIFFERS, sentence
from kit.report.records import BIMODAL, cases, coordinates, document, records
from kit.report.report_table import HOST_SHOWN, Column, Later, Report, Table, TableCell, plain_table
from kit.report.values_in_words import NONE, counted, one_line
from kit.report.verdicts_in_words import answer, group_sentences, platform_sentences, shows_times

ROWS_MAX = 40
# Cells that differ in these do not stand in one table.
WORK = ("workload", "task", "device")
GAP = 2
EMPTY = TableCell("", is_empty=True)


def comparison_report(
    comparison: Comparison,
    titles: Mapping[str, str],
    *,
    wide: bool = False,
    allowed_pct: float | None = None,
    file: Path | None = None,
) -> Report:
    """Return the report.

    Args:
        comparison: of any kind.
        titles: of each backend, as people write it.
        wide: every column and every note is wanted.
        allowed_pct: the limit of `--fail-if-slower`.
        file: the profile that the hint names.
    """
    operations = [group for group in comparison.groups if group.are_operations]
    networks = [group for group in comparison.groups if group not in operations]
    fits = [group for group in networks if not all(row.cell.in_blocks for row in group.rows)]
    steps = [group for group in networks if group not in fits]
    # Steps, fits and operations have columns of their own. With networks, operations are their ceilings: for --wide.
    alike = [groups for groups in (steps, fits, operations if wide or not networks else []) if groups]
    tables = [table for groups in alike for table in _tables(comparison, groups, titles, wide=wide)]
    marks = {cell.mark for table in tables for row in table.rows for cell in row if cell.mark}
    if wide and any(row.break_even is not None and row.value("process_shared") for row in comparison.rows):
        marks.add("process_shared")
    notes = [line.evidence for line in machine_wide(comparison)]
    notes += [*note_lines(comparison, marks, wide=wide), *mismatch_lines(comparison, wide=wide)]
    return Report(
        name="kit compare",
        headline=headline(comparison, titles, wide=wide),
        tables=tables,
        notes=notes,
        legend=legend(comparison, tables),
        hint=_hint(comparison, "" if file is None else shlex.quote(str(file)), wide=wide),
        records=Later(lambda: records(comparison)),
        cases=Later(lambda: cases(comparison, allowed_pct)),
        properties={"rule": comparison.rule} | ({} if allowed_pct is None else {"allowed": f"{allowed_pct:g} %"}),
        labels=Later(lambda: [*_labels(comparison)]),
        states=_states(comparison),
        document=lambda: document(comparison),
        is_wide=wide,
        rows_max=ROWS_MAX,
    )


def _labels(comparison: Comparison) -> Iterator[dict[str, str]]:
    """Yield what tells each row from those of other cells, profiles and machines, and is the same in a later run."""
    alone = comparison.headlines[0].label if len(comparison.headlines) == 1 else ""
    for group in comparison.groups:
        for row in group.rows:
            host = row.hosts[0][:HOST_SHOWN] if len(row.hosts) == 1 else ""
            labels = {"profile": " ".join(row.profiles) or alone, "host": host, "group": group.key}
            labels |= {axis: str(value) for axis, value in coordinates(row.cell).items() if value is not None}
            yield {name: value for name, value in labels.items() if value}


def _states(comparison: Comparison) -> dict[str, Sequence[str]]:
    """Return the verdicts that a row may have."""
    words = {"verdict": METRICS[comparison.by].words, "energy_verdict": METRICS["energy_per_sample_j"].words}
    return {name: (*known, "same", "unresolved", BIMODAL) for name, known in words.items()}


def _tables(
    comparison: Comparison, groups: Sequence[GroupRows], titles: Mapping[str, str], *, wide: bool
) -> list[Table]:
    """Return a table for each group; all have the same columns."""
    (sides, short), is_sided = sides_of(comparison), comparison.kind == "platforms"
    shown = {}
    for side in sides:
        rows = [[row for row in group.rows if not is_sided or row.side == side] for group in groups]
        shown[side] = shown_columns(rows, comparison.by, wide=wide, is_platform=is_sided)
    tables = []
    for group in groups:
        baseline = sides[0] if is_sided else group.baseline if len(group.rows) > 1 else None
        against = f"against {one_line(short.get(baseline, baseline))}" if baseline else ""
        columns = [NAME]
        for side in sides:
            answers = [] if is_sided and side == sides[0] else [Column(against, right=False, folds=not is_sided)]
            side_columns = [*shown[side], *answers]
            # A platform is called by its whole name where there is room for it.
            has_room = len(side) <= sum(len(column.title) + GAP for column in side_columns)
            columns += [column._replace(over=one_line(side if has_room else short[side])) for column in side_columns]
        lines: list[tuple[str, dict[str, Row]]] = [(row_name(row, short), {"": row}) for row in group.rows]
        if is_sided:
            members = dict.fromkeys(row.member for row in group.rows)
            lines = [(name, {row.side: row for row in group.rows if row.member == name}) for name in members]
        cells = [_line(group, name, rows, shown, against, wide=wide) for name, rows in lines]
        below = platform_sentences(group, short, titles) if is_sided else group_sentences(group, titles, wide=wide)
        tables.append(Table(" · ".join(map(one_line, group.title)), columns, cells, below))
    return tables


def _line(
    group: GroupRows, name: str, rows: Mapping[str, Row], shown: Mapping[str, list[Column]], against: str, *, wide: bool
) -> list[TableCell]:
    """Return the cells of a row, whose side is "", or of a member.

    A side without a number has a letter for its reason.
    """
    is_sided, line = "" not in shown, [name_cell(name, rows.get(""))]
    for side, columns in shown.items():
        row, last = rows.get(side), EMPTY
        if row is not None and (row.has_number or not is_sided):
            style = "" if row.has_number else "red"
            cells = [cell_of(column, row, style, wide=wide) for column in columns]
            last = answer_cell(row, is_compared=bool(against), in_times=shows_times(group.rows))
        else:
            is_here = any(known.side == side for known in group.rows)
            reasons = [
                known.reason for known in group.missing if is_here and (known.member, known.side) == (name, side)
            ]
            because = sentence(reasons[0]) if reasons else ""
            if row is not None:
                because = "no rounds" if row.failure is None else f"failed: {sentence(row.failure)}"
            cells = [EMPTY] * len(columns)
            if because:
                cells = [TableCell(NONE, because=because), *[TableCell(NONE)] * (len(columns) - 1)]
        line += cells if is_sided and side == next(iter(shown)) else [*cells, last]
    return line


def _hint(comparison: Comparison, path: str, *, wide: bool) -> str:
    """Return the next commands, a line each: ``why (4 findings): kit compare quick.json --why``."""
    command, lines = f"kit compare {path} " if path else "add ", list[str]()
    count = len(machine_wide(comparison)) + sum(len(explanations(group)) for group in comparison.groups)
    if count or comparison.mismatches:
        findings = f" ({counted(count, 'finding')})" if count else ""
        lines.append(f"why{findings}: {command}--why")
    if path and (axes := _across(comparison)):
        lines.append(f"side by side: {command}--rows {','.join(axes)} --columns backend")
    if not wide:
        lines.append(f"all columns: {command}--wide")
    elif path:
        lines.append(f"every launch: kit show {path}")
    return "\n".join(lines)


def _across(comparison: Comparison) -> list[str]:
    """Return the axes with several values at each of which a run's frameworks have a table of their own."""
    groups = [group for group in comparison.groups if not group.are_operations]
    if comparison.kind != "cells" or not all(len({row.cell.backend for row in group.rows}) > 1 for group in groups):
        return []
    values: dict[tuple[tuple[object, ...], str], set[frozenset[object]]] = {}  # by a group's work, and an axis
    for group in groups:
        cells = [row.cell for row in group.rows]
        for axis in axes_of(cells):
            work = tuple(cells[0].value(name) for name in WORK)
            values.setdefault((work, axis), set()).add(frozenset(cell.value(axis) for cell in cells))
    varying = dict.fromkeys(axis for (_, axis), of_groups in values.items() if len(of_groups) > 1)
    return [] if "compile_mode" in varying else [axis for axis in varying if axis not in ("backend", "variant")]


def why_report(
    comparison: Comparison, titles: Mapping[str, str], allowed_pct: float | None = None, file: Path | None = None
) -> Report:
    """Return the rows' answers, then what explains them: findings of one run, or every difference between runs.

    Arguments are as of `comparison_report`; `file` is the profile of one run.
    """
    path = "" if file is None else shlex.quote(str(file))
    groups_titles = [" · ".join(group.title) for group in comparison.groups]
    answers = [
        [title, row.name, answer(row, in_times=shows_times(group.rows))]
        for title, group in zip(groups_titles, comparison.groups, strict=True)
        for row in group.rows
        if not row.is_baseline
    ]
    if comparison.kind == "cells":
        groups = [machine_wide(comparison, path), *(explanations(group, path) for group in comparison.groups)]
        heads = ["All groups", *groups_titles]
        explained = [(title, lines) for title, lines in zip(heads, groups, strict=True) if lines]
        tables = [
            _why(title, ("", ""), [(line.rule, line.evidence, line.remedy) for line in lines])
            for title, lines in explained
        ]
        nothing = Table("Findings", (Column(""),), (), sentences=["No rule of the audit explains these numbers."])
        tables = tables or [nothing]
        listed = [{"group": title, **line._asdict()} for title, lines in explained for line in lines]
    else:
        known = comparison.mismatches
        differing = [(mismatch.grade, mismatch_words(mismatch), EFFECTS.get(mismatch.kind)) for mismatch in known]
        table = _why("Differences", ("grade", "what differs, and its effect"), differing)
        tables = [table if known else table._replace(sentences=[NOTHING_DIFFERS])]
        listed = [
            {name: getattr(mismatch, name) for name in ("grade", "kind", "name")}
            | {"value": value, "profiles": " ".join(labels)}
            for mismatch in known
            for value, labels in mismatch.values
        ]
    usual = comparison_report(comparison, titles, wide=True, allowed_pct=allowed_pct)
    lines = enumerate(mismatch_lines(comparison, wide=True), 1)
    return usual._replace(
        tables=[plain_table("Answers", ("group", "row", "against the baseline"), answers, left=3), *tables],
        notes=note_lines(comparison, set(), wide=True),
        legend=(),
        hint="",
        properties={**usual.properties, **{f"difference.{number:02}": line for number, line in lines}},
        records=listed,
        is_wide=False,
        rows_max=None,
    )


def _why(title: str, heads: Sequence[str], rows: Sequence[tuple[str, str, str | None]]) -> Table:
    """Return a table of what was found; below each, what more is known of it."""
    cells = []
    for name, words, more in rows:
        cells += [[name, words], *([["", f"{more.rstrip('.')}."]] if more else [])]
    return plain_table(title, heads, cells)
