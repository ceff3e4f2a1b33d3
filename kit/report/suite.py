"""A suite's own table as a report: the figures of each device of each profile; a letter says why a cell is blank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kit.compare.asked import ANY
from kit.compare.metrics import FIGURES
from kit.compare.naming import platform_names
from kit.compare.suite_table import GAINS, Figure, RowKey, SuiteTable, TableColumn
from kit.profile.launch import SYNTHETIC
from kit.profile.reason import reason
from kit.profile.schema import FigureName
from kit.report.plain import NONE, one_line
from kit.report.quantity import duration, hundredths, number, with_sd
from kit.report.sentences import sentence
from kit.report.table import Case, Cell, Column, Report, Table

# Before a time that other programs made longer.
CONTENDED = "!"
# A profile has no figure here because it has no cell of this row.
NOTHING = (reason("not_published"), reason("not_measured"))
# By the unit of a figure.
WORDS: Mapping[str, Callable[[float], str]] = {
    "ns": duration,
    "time_s": lambda value_s: duration(1e9 * value_s),
    "score": hundredths,
    "times_pct": lambda value_pct: f"{number(value_pct)} %",
}


class _Entry(NamedTuple):
    """A figure with its row and column, in the words of a table."""

    key: RowKey
    column: int
    name: FigureName
    figure: Figure

    @property
    def words(self) -> str:
        """The value; a dash where there is none."""
        figure, words = self.figure, WORDS[FIGURES[self.name].unit]
        return NONE if figure.value is None else with_sd(figure.value, figure.spread, words)

    @property
    def why(self) -> str:
        """Why there is no value."""
        return sentence(self.figure.reason or reason("not_measured"))

    @property
    def cell(self) -> Cell:
        """It in the table."""
        if self.figure.value is None:
            return Cell(self.words, because=self.why, is_empty=self.figure.reason in NOTHING)
        marks = [CONTENDED] if self.figure.contention_pct else []
        return Cell(" ".join([*marks, *(["≈"] if self.figure.is_computed else []), self.words]))


def suite_report(table: SuiteTable, hint: str = "") -> Report:
    """Return the report of a suite's table; figures that a device or a document lacks are left out."""
    entries = [
        [
            _Entry(key, index, name, figure)
            for index, of_column in enumerate(of_row)
            for name, figure in of_column.items()
        ]
        for key, of_row in zip(table.rows, table.values, strict=True)
    ]
    every = [entry for of_row in entries for entry in of_row]
    valued = {(entry.column, entry.name) for entry in every if entry.figure.value is not None}
    shown = [(index, name) for index in range(len(table.columns)) for name in table.figures if (index, name) in valued]
    measured = [(column.device, column.model, column.profile) for column in table.columns if not column.source]
    names = iter(platform_names(measured))
    heads = [one_line(f"{column.device} · published" if column.source else next(names)) for column in table.columns]
    rows = []
    for key, of_row in zip(table.rows, entries, strict=True):
        by_place = {(entry.column, entry.name): entry.cell for entry in of_row}
        cells = [by_place[place] for place in shown]
        rows += [] if all(cell.is_empty for cell in cells) else [[*map(Cell, map(one_line, key)), *cells]]
    columns = [Column(axis, right=False) for axis in table.axes]
    columns += [Column(FIGURES[name].title, over=heads[index]) for index, name in shown]
    known = dict.fromkeys(column.epochs for column in table.columns if column.epochs is not None)
    epochs = f" · fits of {' and '.join(map(str, known))} epoch{'' if list(known) == [1] else 's'}" if known else ""
    return Report(
        name="kit compare --table",
        headline=[one_line(f"{table.title}{epochs}"), *map(one_line, table.cpus)],
        tables=[Table("", columns, rows)],
        notes=[*_missing(table, shown, heads), *_notes(table, shown, heads, [entry.figure for entry in every])],
        hint=hint,
        records=[_record(table.axes, entry, table.columns[entry.column]) for entry in every],
        cases=[_case(entry, heads[entry.column]) for entry in every if not table.columns[entry.column].source],
        document=table,
    )


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


def _record(axes: Sequence[str], entry: _Entry, column: TableColumn) -> dict[str, Any]:
    """Return a record of a figure, in the unit that its name ends in."""
    figure = entry.figure
    record: dict[str, Any] = dict(zip(axes, entry.key, strict=True))
    record |= {name: getattr(column, name) for name in ("device", "model", "profile", "source")}
    record |= {"figure": entry.name, "value": figure.value, "spread": figure.spread}
    record |= {"reason": None if figure.reason is None else entry.why}
    return record | {"computed": "yes" if figure.is_computed else "", "contention_pct": figure.contention_pct}


def _case(entry: _Entry, head: str) -> Case:
    """Return the case of a figure; it is skipped where there is no value."""
    case = Case(f"{' '.join(entry.key)} {FIGURES[entry.name].title}", head)
    if entry.figure.value is None:
        return case._replace(outcome="skipped", words=entry.why)
    return case._replace(output=WORDS[FIGURES[entry.name].unit](entry.figure.value))
