"""A comparison as a report: a table a group, its sentences, what differs between runs, and what else has to be said.

One builder makes the tables of every comparison: a line a row, or a line a member with the sides next to each other.

                 cpu       gpu · H100 80GB HBM3
mlp train         step       step  J/1k  against cpu
  jax          3.18 ms     104 µs  0.51  31 [24, 39] × faster
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from kit.compare.rows import Comparison, GroupRows
from kit.report.answer import answer
from kit.report.columns import NAME_MAX, STEP, STYLES, cell_of, columns_of
from kit.report.comparison_records import cases, document, records
from kit.report.conclusions import group_sentences, platform_sentences
from kit.report.headline import headline, short_names, sides_of
from kit.report.notes import explanations, legend, machine_wide, mismatch_lines, mismatch_words, note_lines
from kit.report.plain import NONE, one_line
from kit.report.quantity import counted
from kit.report.sentences import EFFECTS, sentence
from kit.report.table import Cell, Column, Later, Report, Table, plain_table
from kit.workloads.operations import is_operation

ROWS_MAX = 40
GAP = 2
# Without --wide a platform shows what is judged, and joules and costs where they are known.
ANSWERING = ("step", "fit", "median", "time/sample", "J/1k", "cost/1M")
EMPTY = Cell("", is_empty=True)


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
    operations = [group for group in comparison.groups if is_operation(group.rows[0].cell)]
    networks = [group for group in comparison.groups if group not in operations]
    fits = [group for group in networks if any(row.cell.task == "fit" for row in group.rows)]
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
        notes=[*notes, *legend(comparison, tables)],
        hint=_hint(comparison, "" if file is None else shlex.quote(str(file)), wide=wide),
        records=Later(lambda: records(comparison)),
        cases=Later(lambda: cases(comparison, allowed_pct)),
        properties={"rule": comparison.rule} | ({} if allowed_pct is None else {"allowed": f"{allowed_pct:g} %"}),
        document=lambda: document(comparison),
        is_wide=wide,
        rows_max=ROWS_MAX,
    )


def _tables(
    comparison: Comparison, groups: Sequence[GroupRows], titles: Mapping[str, str], *, wide: bool
) -> list[Table]:
    """Return a table for each group; all have the same columns."""
    sides, short, is_sided = sides_of(comparison), short_names(comparison), comparison.kind == "platforms"
    shown = dict[str, list[Column]]()
    for side in sides:
        of_groups = [[row for row in group.rows if not is_sided or row.side == side] for group in groups]
        columns = columns_of(of_groups, comparison.by, wide=wide)
        if is_sided:
            answering = [known for known in columns if wide or known.title in ANSWERING or known.name == comparison.by]
            columns = [column._replace(hides=0) for column in answering or STEP[:1]]
        shown[side] = columns
    tables = []
    for group in groups:
        columns = [Column("", right=False, width_max=NAME_MAX)]
        baseline = one_line(short.get(group.baseline or "", group.baseline or ""))
        against = f"against {baseline}" if group.baseline and len(group.rows) > 1 else ""
        for side in sides:
            if not is_sided:
                columns += [*shown[side], Column(against, right=False, folds=True)]
                continue
            answers = [Column(f"against {short[sides[0]]}", right=False)] if side != sides[0] else []
            of_side = [*shown[side], *answers]
            # A platform is called by its whole name where there is room for it.
            over = side if len(side) <= sum(len(column.title) + GAP for column in of_side) else short[side]
            columns += [column._replace(over=one_line(over)) for column in of_side]
        rows = _lines_of_sides(group, sides, shown, wide=wide) if is_sided else []
        for row in [] if is_sided else group.rows:
            style = "" if row.has_number else "red"
            name = f"{row.member} · {short[row.side]}" if row.side in short else row.name
            is_silent = not against and row.is_baseline and row.has_number
            verdict = style if row.versus is None else STYLES.get(row.versus.verdict, "")
            cells = [cell_of(column, row, style, wide=wide) for column in shown[""]]
            rows.append([Cell(one_line(name), style), *cells, Cell("" if is_silent else answer(row), verdict)])
        below = platform_sentences(group, short, titles) if is_sided else group_sentences(group, titles, wide=wide)
        tables.append(Table(" · ".join(map(one_line, group.title)), columns, rows, below))
    return tables


def _lines_of_sides(
    group: GroupRows, sides: Sequence[str], shown: Mapping[str, Sequence[Column]], *, wide: bool
) -> list[list[Cell]]:
    """Return a line for each member; below each side, a letter where it has no number, whose reason is a footnote."""
    rows = {(row.member, row.side): row for row in group.rows}
    why = {(missing.member, missing.side): sentence(missing.reason) for missing in group.missing}
    here = {row.side for row in group.rows}
    lines = []
    for member in dict.fromkeys(row.member for row in group.rows):
        line = [Cell(one_line(member))]
        for side in sides:
            row, because = rows.get((member, side)), why.get((member, side), "") if side in here else ""
            last = [EMPTY] if side != sides[0] else []
            if row is None and not because:  # nothing of the group is on this side
                line += [EMPTY] * len(shown[side])
            elif row is None or not row.has_number:
                because = because or (f"failed: {sentence(row.failure)}" if row and row.failure else "no rounds")
                line += [Cell(NONE, because=because), *[Cell(NONE)] * (len(shown[side]) - 1)]
            else:
                line += [cell_of(column, row, "", wide=wide) for column in shown[side]]
                verdict = "" if row.versus is None else STYLES.get(row.versus.verdict, "")
                last = [Cell(answer(row), verdict)] if last else []
            line += last
        lines.append(line)
    return lines


def _hint(comparison: Comparison, path: str, *, wide: bool) -> str:
    """Return the next commands, a line each: ``why (4 findings): kit compare quick.json --why``."""
    command, lines = f"kit compare {path} " if path else "add ", list[str]()
    count = len(machine_wide(comparison)) + sum(len(explanations(group)) for group in comparison.groups)
    if count or comparison.mismatches:
        findings = f" ({counted(count, 'finding')})" if count else ""
        lines.append(f"why{findings}: {command}--why")
    if not wide:
        lines.append(f"all columns: {command}--wide")
    elif path:
        lines.append(f"every launch: kit show {path}")
    return "\n".join(lines)


def why_report(comparison: Comparison, allowed_pct: float | None = None) -> Report:
    """Return the rows' answers, then what explains them: findings of one run, or every difference between runs."""
    answers = [
        [" · ".join(group.title), row.name, answer(row)]
        for group in comparison.groups
        for row in group.rows
        if not row.is_baseline
    ]
    titled = [("All groups", machine_wide(comparison))]
    titled += [(" · ".join(group.title), explanations(group)) for group in comparison.groups]
    if comparison.kind == "cells":
        tables = [
            plain_table(title, ("", ""), [row for line in lines for row in _why(line.rule, line.evidence, line.remedy)])
            for title, lines in titled
            if lines
        ]
        nothing = Table("Findings", (Column(""),), (), sentences=["No rule of the audit explains these numbers."])
        tables = tables or [nothing]
        listed = [{"group": title, **line._asdict()} for title, lines in titled for line in lines]
    else:
        differing = [
            row
            for mismatch in comparison.mismatches
            for row in _why(mismatch.grade, mismatch_words(mismatch), EFFECTS.get(mismatch.kind))
        ]
        alike = [] if differing else ["No recorded fact of machine, software or settings differs."]
        table = plain_table("Differences", ("grade", "what differs, and its effect"), differing)
        tables = [table._replace(sentences=alike)]
        listed = [
            {name: getattr(mismatch, name) for name in ("grade", "kind", "name")}
            | {"value": value, "profiles": " ".join(labels)}
            for mismatch in comparison.mismatches
            for value, labels in mismatch.values
        ]
    usual = comparison_report(comparison, {}, wide=True, allowed_pct=allowed_pct)
    lines = enumerate(mismatch_lines(comparison, wide=True), 1)
    return usual._replace(
        tables=[plain_table("Answers", ("group", "row", "against the baseline"), answers, left=3), *tables],
        notes=note_lines(comparison, set(), wide=True),
        hint="",
        properties={**usual.properties, **{f"difference.{number:02}": line for number, line in lines}},
        records=listed,
        is_wide=False,
        rows_max=None,
    )


def _why(name: str, words: str, more: str | None) -> list[list[str]]:
    return [[name, words], *([["", f"{more.rstrip('.')}."]] if more else [])]
