"""A suite's own table as a report: the figures of each device of each profile; a letter says why a cell is blank."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from kit.compare.axes import ANY
from kit.compare.naming import platform_names
from kit.compare.suite_table import GAINS, SUITE_FIGURES, Figure, SuiteTable, TableColumn
from kit.profile.fields import reason
from kit.profile.schema import SYNTHETIC, FigureName
from kit.report.reasons_in_words import sentence
from kit.report.report_table import Case, Column, Report, Table, TableCell, record_field, record_of
from kit.report.values_in_words import BY_UNIT, NONE, one_line, with_sd

# Before a time that other programs made longer, and before one that a part of its steps stands for.
CONTENDED, COMPUTED = "!", "≈"
# A profile has no figure here because it has no cell of this row.
NOTHING = (reason("not_published"), reason("not_measured"))


class Given(NamedTuple):
    """A figure, and where the table has it."""

    key: Sequence[str]  # of the row, a value on each axis
    number: int  # of the column
    column: TableColumn
    head: str  # of the column
    name: FigureName
    figure: Figure


def suite_report(table: SuiteTable, hint: str = "") -> Report:
    """Return the report of a suite's table; figures that a device or a document lacks are left out."""
    measured = [(column.device, column.model, column.profile) for column in table.columns if not column.source]
    names = iter(platform_names(measured))
    heads = [one_line(f"{column.device} · published" if column.source else next(names)) for column in table.columns]
    figures = [
        Given(key, number, column, head, name, figure)
        for key, row_figures in zip(table.rows, table.values, strict=True)
        for number, (column, head, column_figures) in enumerate(zip(table.columns, heads, row_figures, strict=True))
        for name, figure in column_figures.items()
    ]
    valued = {(given.number, given.name) for given in figures if given.figure.value is not None}
    shown = [(number, name) for number in range(len(heads)) for name in table.figures if (number, name) in valued]
    rows = []
    for key, row_figures in zip(table.rows, table.values, strict=True):
        cells = [_cell(name, row_figures[index][name]) for index, name in shown]
        rows += [] if all(cell.is_empty for cell in cells) else [[*map(TableCell, map(one_line, key)), *cells]]
    columns = [Column(axis, right=False) for axis in table.axes]
    columns += [Column(SUITE_FIGURES[name].title, over=heads[index]) for index, name in shown]
    known = dict.fromkeys(column.epochs for column in table.columns if column.epochs is not None)
    epochs = f" · fits of {' and '.join(map(str, known))} epoch{'' if list(known) == [1] else 's'}" if known else ""
    fields = [record_field("", lambda given: dict(zip(table.axes, given.key, strict=True))), *FIELDS]
    return Report(
        name="kit compare --table",
        headline=[one_line(f"{table.title}{epochs}"), *map(one_line, table.cpus)],
        tables=[Table("", columns, rows)],
        notes=_notes(table, shown, figures),
        hint=hint,
        records=[record_of(fields, given) for given in figures],
        cases=[_case(given) for given in figures if not given.column.source],
        document=table,
    )


def _why(figure: Figure) -> str:
    return sentence(figure.reason or reason("not_measured"))


FIELDS = (
    *(record_field(name, attrgetter(f"column.{name}")) for name in ("device", "model", "profile", "source")),
    record_field("figure", lambda given: given.name),
    record_field("value", lambda given: given.figure.value),
    record_field("spread", lambda given: given.figure.spread),
    record_field("reason", lambda given: None if given.figure.reason is None else _why(given.figure)),
    record_field("computed", lambda given: "yes" if given.figure.is_computed else ""),
    record_field("contention_pct", lambda given: given.figure.contention_pct),
)


def _cell(name: FigureName, figure: Figure) -> TableCell:
    if figure.value is None:
        return TableCell(NONE, because=_why(figure), is_empty=figure.reason in NOTHING)
    words = with_sd(figure.value, figure.spread, BY_UNIT[SUITE_FIGURES[name].unit])
    marks = {CONTENDED: figure.contention_pct, COMPUTED: figure.is_computed}
    return TableCell(" ".join([*(mark for mark, applies in marks.items() if applies), words]))


def _case(given: Given) -> Case:
    """Return the case of a figure; it is skipped where there is no value."""
    metric, figure = SUITE_FIGURES[given.name], given.figure
    case = Case(f"{' '.join(given.key)} {metric.title}", given.head)
    if figure.value is None:
        return case._replace(outcome="skipped", words=_why(figure))
    return case._replace(output=BY_UNIT[metric.unit](figure.value))


def _notes(table: SuiteTable, shown: Sequence[tuple[int, FigureName]], figures: Sequence[Given]) -> list[str]:
    """Return what a device lacks in all rows, by the reason of the first; what gains and marks are; the sources."""
    missing: dict[tuple[int, str, str], list[str]] = {}
    for given in figures:
        why, is_first = given.figure.reason, given.key == table.rows[0]
        is_shown = (given.number, given.name) in shown or given.name not in table.figures
        if is_first and not is_shown and why is not None and why.code != "gains_are_over_this":
            missing.setdefault((given.number, given.head, sentence(why)), []).append(SUITE_FIGURES[given.name].title)
    worst_pct = max((given.figure.contention_pct or 0.0 for given in figures), default=0.0)
    contended = reason("contended_times", contention_pct=worst_pct)
    lines = {
        "gain: CPU time ÷ device time: 100 % is as fast, 200 % twice as fast": any(name in GAINS for _, name in shown),
        "train time: all steps of the fit but the first, which compiles": "train_time_s" in table.figures
        and any(not table.columns[index].source for index, _ in shown),
        sentence(reason("computed_times")): any(given.figure.is_computed for given in figures),
        f"{CONTENDED} {sentence(contended)}": worst_pct > 0,
        **{f"{given.head}: {sentence(reason('data_synthetic'))}": SYNTHETIC in given.column.data for given in figures},
        "any: the document does not say which one": any(ANY in row for row in table.rows),
    }
    sources = dict.fromkeys(column.source for column in table.columns if column.source is not None)
    return [
        *(f"{head}: no {', '.join(titles)}: {why}" for (_, head, why), titles in missing.items()),
        *(line for line, applies in lines.items() if applies),
        *(one_line(f"published: not measured with Steadykit; from {source}") for source in sources),
    ]
