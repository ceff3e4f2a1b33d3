"""A suite's own table as a report: the figures of each device of each profile; a letter says why a cell is blank."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from kit.compare.naming import platform_names
from kit.compare.suite_table import ANY, GAINS, Figure, SuiteTable
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


class Shown(NamedTuple):
    """How a figure is titled and written."""

    title: str
    words: Callable[[float], str]


def _seconds(value_s: float) -> str:
    return duration(1e9 * value_s)


def _gain(value_pct: float) -> str:
    return f"{number(value_pct)} %"


FIGURES: Mapping[FigureName, Shown] = {
    "train_time_s": Shown("train time", _seconds),
    "test_time_s": Shown("test time", _seconds),
    "epoch_time_s": Shown("epoch", _seconds),
    "step_ns": Shown("step", duration),
    "train_sample_ns": Shown("train/sample", duration),
    "infer_sample_ns": Shown("infer/sample", duration),
    "accuracy": Shown("accuracy %", hundredths),
    "precision": Shown("precision %", hundredths),
    "recall": Shown("recall %", hundredths),
    "f1": Shown("F1 %", hundredths),
    "train_gain_pct": Shown("train gain", _gain),
    "test_gain_pct": Shown("test gain", _gain),
    "train_sample_gain_pct": Shown("train gain", _gain),
    "infer_sample_gain_pct": Shown("infer gain", _gain),
}


def suite_report(table: SuiteTable, hint: str = "") -> Report:
    """Return the report of a suite's table; figures that a device or a document lacks are left out."""
    shown = [
        (place, name)
        for place in range(len(table.columns))
        for name in table.figures
        if any(row[place][name].value is not None for row in table.values)
    ]
    heads = _heads(table)
    columns = [
        *(Column(axis, right=False) for axis in table.axes),
        *(Column(FIGURES[name].title, over=heads[place]) for place, name in shown),
    ]
    rows = [
        [
            *(Cell(one_line(value)) for value in key),
            *(_cell(figures[place][name], name) for place, name in shown),
        ]
        for key, figures in zip(table.rows, table.values, strict=True)
        if not all(_is_empty(figures[place][name]) for place, name in shown)
    ]
    return Report(
        name="kit compare --table",
        headline=_headline(table),
        tables=[Table("", columns, rows)],
        notes=_notes(table, shown),
        hint=hint,
        records=_records(table),
        cases=_cases(table),
        document=table,
    )


def _is_empty(figure: Figure) -> bool:
    return figure.value is None and figure.reason in NOTHING


def _heads(table: SuiteTable) -> list[str]:
    """Return the line above each column: the platform that measured it, or `published`."""
    measured = [column for column in table.columns if not column.source]
    names = iter(platform_names([(column.device, column.model, column.profile) for column in measured]))
    return [one_line(f"{column.device} · published" if column.source else next(names)) for column in table.columns]


def _cell(figure: Figure, name: FigureName) -> Cell:
    if figure.value is None:
        return Cell(NONE, because=_why(figure), is_empty=_is_empty(figure))
    shown = with_sd(figure.value, figure.spread, FIGURES[name].words)
    if figure.is_computed:
        shown = f"≈ {shown}"
    return Cell(f"{CONTENDED} {shown}" if figure.contention_pct else shown)


def _headline(table: SuiteTable) -> list[str]:
    known = dict.fromkeys(column.epochs for column in table.columns if column.epochs is not None)
    epochs = f" · fits of {' and '.join(map(str, known))} epoch{'' if list(known) == [1] else 's'}" if known else ""
    return [one_line(f"{table.title}{epochs}"), *map(one_line, table.cpus)]


def _notes(table: SuiteTable, shown: Collection[tuple[int, FigureName]]) -> list[str]:
    """Return which figures a device lacks, what gains are, and where published figures come from."""
    notes, heads = list[str](), _heads(table)
    for place in range(len(table.columns)):
        missing: dict[str, list[str]] = {}
        for name in table.figures:
            why = table.values[0][place][name].reason if table.values else None
            if (place, name) not in shown and why is not None and why.code != "gains_are_over_this":
                missing.setdefault(sentence(why), []).append(FIGURES[name].title)
        notes += [f"{heads[place]}: no {', '.join(names)}: {why}" for why, names in missing.items()]
    if any(name in GAINS for _, name in shown):
        notes.append("gain: CPU time ÷ device time: 100 % is as fast, 200 % twice as fast")
    if "train_time_s" in table.figures and any(not table.columns[place].source for place, _ in shown):
        notes.append("train time: all steps of the fit but the first, which compiles")
    if any(figure.is_computed for row in table.values for of_column in row for figure in of_column.values()):
        notes.append(sentence(reason("computed_times")))
    taken_pct = [figure.contention_pct for row in table.values for figures in row for figure in figures.values()]
    if worst_pct := max(filter(None, taken_pct), default=None):
        notes.append(f"{CONTENDED} {sentence(reason('contended_times', contention_pct=worst_pct))}")
    synthetic = sentence(reason("data_synthetic"))
    notes += [
        f"{head}: {synthetic}" for head, column in zip(heads, table.columns, strict=True) if SYNTHETIC in column.data
    ]
    if any(ANY in row for row in table.rows):
        notes.append("any: the document does not say which one")
    sources = dict.fromkeys(column.source for column in table.columns if column.source is not None)
    return [*notes, *(one_line(f"published: not measured with Steadykit; from {source}") for source in sources)]


def _records(table: SuiteTable) -> list[dict[str, object]]:
    """Return a record for each figure, in the unit that its name ends in."""
    return [
        dict[str, object](zip(table.axes, key, strict=True))
        | {
            "device": column.device,
            "model": column.model,
            "profile": column.profile,
            "source": column.source,
            "figure": name,
        }
        | {"value": figure.value, "spread": figure.spread}
        | {"reason": None if figure.reason is None else sentence(figure.reason)}
        | {"computed": "yes" if figure.is_computed else "", "contention_pct": figure.contention_pct}
        for key, figures in zip(table.rows, table.values, strict=True)
        for column, of_column in zip(table.columns, figures, strict=True)
        for name, figure in of_column.items()
    ]


def _cases(table: SuiteTable) -> list[Case]:
    """Return a case for each figure that is not of a document; skipped where there is no value."""
    return [
        Case(f"{' '.join(key)} {FIGURES[name].title}", head, output=FIGURES[name].words(figure.value))
        if figure.value is not None
        else Case(f"{' '.join(key)} {FIGURES[name].title}", head, "skipped", _why(figure))
        for key, figures in zip(table.rows, table.values, strict=True)
        for head, column, of_column in zip(_heads(table), table.columns, figures, strict=True)
        if not column.source
        for name, figure in of_column.items()
    ]


def _why(figure: Figure) -> str:
    return "not measured" if figure.reason is None else sentence(figure.reason)
