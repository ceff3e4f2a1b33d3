"""A suite's own table as a report: the figures of each device of each profile; a letter says why a cell is blank."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from kit.compare.axes import ANY
from kit.compare.metrics import FIGURES
from kit.compare.naming import platform_names
from kit.compare.suite_table import GAINS, Figure, SuiteTable, TableColumn
from kit.profile.launch import SYNTHETIC
from kit.profile.reason import reason
from kit.profile.schema import FigureName
from kit.report.columns import WORDS
from kit.report.plain import NONE, one_line
from kit.report.quantity import with_sd
from kit.report.sentences import sentence
from kit.report.table import Case, Cell, Column, Report, Table, field, record_of

# Before a time that other programs made longer, and before one that a part of its steps stands for.
CONTENDED, COMPUTED = "!", "≈"
# A profile has no figure here because it has no cell of this row.
NOTHING = (reason("not_published"), reason("not_measured"))


class Given(NamedTuple):
    """A figure where it is given."""

    key: Sequence[str]  # of the row, a value on each axis
    column: TableColumn
    head: str
    name: FigureName
    figure: Figure


def suite_report(table: SuiteTable, hint: str = "") -> Report:
    """Return the report of a suite's table; figures that a device or a document lacks are left out."""
    measured = [(column.device, column.model, column.profile) for column in table.columns if not column.source]
    names = iter(platform_names(measured))
    heads = [one_line(f"{column.device} · published" if column.source else next(names)) for column in table.columns]
    shown = [
        (index, name)
        for index in range(len(table.columns))
        for name in table.figures
        if any(of_row[index][name].value is not None for of_row in table.values)
    ]
    figures = [
        Given(key, column, head, name, figure)
        for key, of_row in zip(table.rows, table.values, strict=True)
        for column, head, of_column in zip(table.columns, heads, of_row, strict=True)
        for name, figure in of_column.items()
    ]
    rows = []
    for key, of_row in zip(table.rows, table.values, strict=True):
        cells = [_cell(name, of_row[index][name]) for index, name in shown]
        rows += [] if all(cell.is_empty for cell in cells) else [[*map(Cell, map(one_line, key)), *cells]]
    columns = [Column(axis, right=False) for axis in table.axes]
    columns += [Column(FIGURES[name].title, over=heads[index]) for index, name in shown]
    known = dict.fromkeys(column.epochs for column in table.columns if column.epochs is not None)
    epochs = f" · fits of {' and '.join(map(str, known))} epoch{'' if list(known) == [1] else 's'}" if known else ""
    fields = [field("", lambda given: dict(zip(table.axes, given.key, strict=True))), *FIELDS]
    return Report(
        name="kit compare --table",
        headline=[one_line(f"{table.title}{epochs}"), *map(one_line, table.cpus)],
        tables=[Table("", columns, rows)],
        notes=[*_missing(table, shown, heads), *_notes(table, shown, heads, [given.figure for given in figures])],
        hint=hint,
        records=[record_of(fields, given) for given in figures],
        cases=[_case(given) for given in figures if not given.column.source],
        document=table,
    )


def _why(figure: Figure) -> str:
    return sentence(figure.reason or reason("not_measured"))


FIELDS = (
    *(field(name, attrgetter(f"column.{name}")) for name in ("device", "model", "profile", "source")),
    field("figure", lambda given: given.name),
    field("value", lambda given: given.figure.value),
    field("spread", lambda given: given.figure.spread),
    field("reason", lambda given: None if given.figure.reason is None else _why(given.figure)),
    field("computed", lambda given: "yes" if given.figure.is_computed else ""),
    field("contention_pct", lambda given: given.figure.contention_pct),
)


def _cell(name: FigureName, figure: Figure) -> Cell:
    if figure.value is None:
        return Cell(NONE, because=_why(figure), is_empty=figure.reason in NOTHING)
    words = with_sd(figure.value, figure.spread, WORDS[FIGURES[name].unit])
    marks = {CONTENDED: figure.contention_pct, COMPUTED: figure.is_computed}
    return Cell(" ".join([*(mark for mark, applies in marks.items() if applies), words]))


def _case(given: Given) -> Case:
    """Return the case of a figure; it is skipped where there is no value."""
    metric, figure = FIGURES[given.name], given.figure
    case = Case(f"{' '.join(given.key)} {metric.title}", given.head)
    if figure.value is None:
        return case._replace(outcome="skipped", words=_why(figure))
    return case._replace(output=WORDS[metric.unit](figure.value))


def _missing(table: SuiteTable, shown: Sequence[tuple[int, FigureName]], heads: Sequence[str]) -> list[str]:
    """Return which figures a device lacks in all rows, by the reason of the first."""
    notes = []
    for index, first in enumerate(table.values[0] if table.values else []):
        titles: dict[str, list[str]] = {}
        for name in table.figures:
            why = first[name].reason
            if (index, name) not in shown and why is not None and why.code != "gains_are_over_this":
                titles.setdefault(sentence(why), []).append(FIGURES[name].title)
        notes += [f"{heads[index]}: no {', '.join(listed)}: {why}" for why, listed in titles.items()]
    return notes


def _notes(
    table: SuiteTable, shown: Sequence[tuple[int, FigureName]], heads: Sequence[str], figures: Sequence[Figure]
) -> list[str]:
    """Return what gains and marks are, and where published figures come from."""
    worst_pct = max((figure.contention_pct or 0.0 for figure in figures), default=0.0)
    contended = reason("contended_times", contention_pct=worst_pct)
    lines = {
        "gain: CPU time ÷ device time: 100 % is as fast, 200 % twice as fast": any(name in GAINS for _, name in shown),
        "train time: all steps of the fit but the first, which compiles": "train_time_s" in table.figures
        and any(not table.columns[index].source for index, _ in shown),
        sentence(reason("computed_times")): any(figure.is_computed for figure in figures),
        f"{CONTENDED} {sentence(contended)}": worst_pct > 0,
        **{
            f"{head}: {sentence(reason('data_synthetic'))}": SYNTHETIC in column.data
            for head, column in zip(heads, table.columns, strict=True)
        },
        "any: the document does not say which one": any(ANY in row for row in table.rows),
    }
    sources = dict.fromkeys(column.source for column in table.columns if column.source is not None)
    published = [one_line(f"published: not measured with Steadykit; from {source}") for source in sources]
    return [*(line for line, applies in lines.items() if applies), *published]
