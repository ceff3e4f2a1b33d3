"""The comparison table as words: which columns there are and what stands in each cell."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from kit.compare.gate import work_of
from kit.compare.rows import Comparison, Row
from kit.compare.unpaired import paired_rows
from kit.profile.schema import Estimate
from kit.report import quantity
from kit.report.footnotes import Footnotes
from kit.report.layout import Column, Group, Line, Table, group_title
from kit.report.plain import NONE, one_line
from kit.report.verdict_words import verdict_words

NOT_AVAILABLE = "n/a"

CellWords = Callable[[Row, Footnotes], str]


# What a table that is too wide can do without, what is missed least first. The name, the step and the verdict stay.
DISPENSABLE = (
    "per sample",
    "warm-up steps",
    "peak MiB",
    "accuracy",
    "CPU %",
    "energy /sample",
    "samples per s",
    "compile +1st step",
    "launches",
)


class _Filled(NamedTuple):
    """A column, and how a row fills it."""

    column: Column
    words: CellWords


def table_of(comparison: Comparison, left_out: Collection[str] = ()) -> Table:
    """Put a comparison into words; of several profiles, the cells that are beside a baseline.

    Args:
        comparison: to be shown.
        left_out: names of columns that are not.
    """
    filled = [one for one in _columns(comparison) if one.column.name not in left_out]
    footnotes = Footnotes()
    works: dict[object, list[Row]] = {}
    for row in paired_rows(comparison.rows) if comparison.kind == "profiles" else comparison.rows:
        works.setdefault(work_of(row.cell), []).append(row)
    groups = [
        Group(group_title(rows[0].cell), [Line([one.words(row, footnotes) for one in filled], row) for row in rows])
        for rows in works.values()
    ]
    return Table([one.column for one in filled], groups, footnotes.lines())


def has_numbers(table: Table, name: str) -> bool:
    """Whether any line has more than a reason in the column of this name."""
    place = next(place for place, column in enumerate(table.columns) if column.name == name)
    cells = [line.cells[place] for group in table.groups for line in group.lines]
    return not all(cell.startswith((NOT_AVAILABLE, NONE)) for cell in cells)


def _columns(comparison: Comparison) -> list[_Filled]:
    profile = [_Filled(Column("", "profile", False), lambda row, _: one_line(row.profile))]
    return [
        _Filled(Column("", "backend", False), lambda row, _: one_line(f"{row.cell.backend}/{row.cell.compile_mode}")),
        *(profile if comparison.kind == "profiles" else []),
        _Filled(Column("compile", "+1st step", True), _estimate("compile_ns", quantity.duration)),
        _Filled(Column("warm-up", "steps", True), _warmup),
        _Filled(Column("steady step", "median [95 % interval]", True), _step),
        _Filled(Column("samples", "per s", True), _estimate("samples_per_s", quantity.rate)),
        _Filled(Column("per", "sample", True), _estimate("sample_ns", quantity.duration)),
        _Filled(Column("CPU", "%", True), _estimate("process_cpu_pct", lambda value: f"{value:.0f}")),
        _Filled(Column("peak", "MiB", True), _memory),
        _Filled(Column("energy", "/sample", True), _estimate("joules_per_sample_j", quantity.energy)),
        _Filled(Column("accuracy", "", True), _estimate("accuracy", quantity.percent)),
        _Filled(Column("launches", "", True), _launches),
        _Filled(Column("verdict against", one_line(comparison.baseline or ""), False), verdict_words),
    ]


def _estimate(field: str, show: Callable[[float], str]) -> CellWords:
    def words(row: Row, footnotes: Footnotes) -> str:
        estimate: Estimate | None = getattr(row.summary, field)
        return show(estimate.value) if estimate is not None else _missing(row, field, footnotes)

    return words


def _missing(row: Row, field: str, footnotes: Footnotes) -> str:
    """Without a step time the row already says why; elsewhere a null has its own reason."""
    if row.problem is not None and row.summary.compile_ns is None:
        return NONE
    reason = row.summary.reasons.get(field)
    step_reason = row.summary.reasons.get("step_ns")
    if reason is None or reason == step_reason:
        return NONE
    return f"{NOT_AVAILABLE}{footnotes.mark(reason)}"


def _step(row: Row, footnotes: Footnotes) -> str:
    if row.summary.step_ns is not None:
        return quantity.duration_estimate(row.summary.step_ns)
    if row.status == "failed":
        return f"failed{footnotes.mark(row.problem or 'failed')}"
    word = "incomplete" if row.launches_seen == 0 else "no steady state"
    return f"{word}{footnotes.mark(row.problem)}" if row.problem else word


def _warmup(row: Row, footnotes: Footnotes) -> str:
    steps = row.summary.warmup_steps
    return f"{steps:,}" if steps is not None else _missing(row, "warmup_steps", footnotes)


def _memory(row: Row, footnotes: Footnotes) -> str:
    peak_b = row.summary.peak_memory_b
    return quantity.mebibytes(peak_b) if peak_b is not None else _missing(row, "peak_memory_b", footnotes)


def _launches(row: Row, _: Footnotes) -> str:
    """Those that gave a steady number, of those that ran where that is fewer."""
    return str(row.launches) if row.launches == row.launches_seen else f"{row.launches}/{row.launches_seen}"
