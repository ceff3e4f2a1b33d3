"""A suite's own table as text, Markdown or CSV; a blank cell says below why it is blank."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Mapping
from typing import IO, NamedTuple

from rich.table import Table
from rich.text import Text

from kit.compare.suite_table import ANY, GAINS, Figure, SuiteTable, TableColumn
from kit.profile.launch import SYNTHETIC
from kit.profile.published import FigureName
from kit.profile.reason import Reason, reason
from kit.report.plain import ascii_json, markdown, one_line, spreadsheet
from kit.report.quantity import duration, number
from kit.report.reasons import sentence
from kit.report.sections import UNLIMITED, console_for, text_of

WIDTH = 100
GAP = 2
# What a profile has no cell of stands in another's rows.
NOTHING = (reason("not_published"), reason("not_measured"))
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Shown(NamedTuple):
    """How a figure is titled and written."""

    title: str
    words: Callable[[float], str]


def _seconds(value_s: float) -> str:
    return duration(1e9 * value_s)


def _share(value: float) -> str:
    return f"{100 * value:.2f}"


def _gain(value_pct: float) -> str:
    return f"{number(value_pct)} %"


FIGURES: Mapping[FigureName, Shown] = {
    "train_time_s": Shown("train time", _seconds),
    "test_time_s": Shown("test time", _seconds),
    "epoch_time_s": Shown("epoch", _seconds),
    "step_ns": Shown("step", duration),
    "train_sample_ns": Shown("train/sample", duration),
    "infer_sample_ns": Shown("infer/sample", duration),
    "accuracy": Shown("accuracy %", _share),
    "precision": Shown("precision %", _share),
    "recall": Shown("recall %", _share),
    "f1": Shown("F1 %", _share),
    "train_gain_pct": Shown("train gain", _gain),
    "test_gain_pct": Shown("test gain", _gain),
    "train_sample_gain_pct": Shown("train gain", _gain),
    "infer_sample_gain_pct": Shown("infer gain", _gain),
}


class _Blanks:
    """Letters for the reasons of blank cells, in order of their first appearance."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def mark(self, why: Reason | None) -> str:
        said = "not measured" if why is None else sentence(why)
        if said not in self.seen:
            self.seen.append(said)
        return f"– {LETTERS[self.seen.index(said) % len(LETTERS)]}"

    def lines(self) -> list[str]:
        return [f"– {letter}  {said}" for letter, said in zip(LETTERS, self.seen, strict=False)]


def render(table: SuiteTable, format_name: str, stream: IO[str] = sys.stdout) -> str:
    """Return the table in a format: "text", "markdown", "csv" or "json"."""
    if format_name == "json":
        return ascii_json(table)
    return {"text": _text, "markdown": _markdown, "csv": _csv}[format_name](table, stream)


def _text(table: SuiteTable, stream: IO[str]) -> str:
    console = console_for(stream, UNLIMITED)
    beside: list[list[int]] = [[]]
    for place in range(len(table.columns)):
        # What does not fit beside the others stands under them.
        fits = console.measure(_drawn(table, [*beside[-1], place], _Blanks())).maximum <= WIDTH
        beside = [*beside[:-1], [*beside[-1], place]] if fits or not beside[-1] else [*beside, [place]]
    blanks = _Blanks()
    drawn = [_drawn(table, places, blanks) for places in beside]
    with console.capture() as capture:
        for line in _headline(table):
            console.print(Text(line, style="bold"))
        for one in drawn:
            console.print()
            console.print(one)
        console.print()
        for line in [*blanks.lines(), *_notes(table)]:
            console.print(Text(line, style="dim"), width=WIDTH)
    return text_of(capture)


def _drawn(table: SuiteTable, places: list[int], blanks: _Blanks) -> Table:
    drawn = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
    titles, rows = _cells(table, places, blanks)
    for at, title in enumerate(titles):
        drawn.add_column(Text(title), justify="left" if at < len(table.axes) else "right", no_wrap=True)
    for row in rows:
        drawn.add_row(*map(Text, row))
    return drawn


def _cells(
    table: SuiteTable, places: list[int], blanks: _Blanks, split: str = "\n"
) -> tuple[list[str], list[list[str]]]:
    """Return the titles, each under its device, and the rows; what a device or document has nothing of is left out."""
    shown = [(place, name) for place in places for name in _figures(table, place)]
    titles = [f"{_head(table, table.columns[place])}{split}{FIGURES[name].title}" for place, name in shown]
    rows = [
        [*map(one_line, key), *(_written(values[place][name], name, blanks) for place, name in shown)]
        for key, values in zip(table.rows, table.values, strict=True)
        if any(values[place][name].value is not None for place, name in shown)
        or any(values[place][name].reason not in NOTHING for place, name in shown)
    ]
    return [*table.axes, *titles], rows


def _figures(table: SuiteTable, place: int) -> list[FigureName]:
    return [name for name in table.figures if any(row[place][name].value is not None for row in table.values)]


def _head(table: SuiteTable, column: TableColumn) -> str:
    measured = {one.profile for one in table.columns if not one.source}
    name = column.profile if len(measured) > 1 else "measured"
    return one_line(f"{column.device} · {'published' if column.source else name}")


def _written(one: Figure, name: FigureName, blanks: _Blanks) -> str:
    if one.value is None:
        return blanks.mark(one.reason)
    words = FIGURES[name].words
    if one.is_computed:
        return f"≈ {words(one.value)}"
    return words(one.value) if one.spread is None else f"{words(one.value)} (sd {words(one.spread)})"


def _headline(table: SuiteTable) -> list[str]:
    found = dict.fromkeys(one.epochs for one in table.columns if one.epochs is not None)
    epochs = f" · fits of {' and '.join(map(str, found))} epoch{'' if list(found) == [1] else 's'}" if found else ""
    return [one_line(f"{table.title}{epochs}"), *map(one_line, table.cpus)]


def _notes(table: SuiteTable) -> list[str]:
    """Return which figures a device has nothing of, what gains are, and where published figures come from."""
    notes = []
    for place, column in enumerate(table.columns):
        missing: dict[str, list[str]] = {}
        for name in table.figures:
            why = table.values[0][place][name].reason if table.values else None
            if name not in _figures(table, place) and why is not None and why.code != "gains_are_over_this":
                missing.setdefault(sentence(why), []).append(FIGURES[name].title)
        notes += [f"{_head(table, column)}: no {', '.join(names)}: {why}" for why, names in missing.items()]
    if any(name in GAINS for place in range(len(table.columns)) for name in _figures(table, place)):
        notes.append("gain: the CPU's time over the device's: 100 % is as fast, 200 % twice as fast")
    if any(
        _figures(table, place) and "train_time_s" in table.figures
        for place, one in enumerate(table.columns)
        if not one.source
    ):
        notes.append("train time: all steps of the fit but the first, compilation left out")
    if any(one.is_computed for row in table.values for own in row for one in own.values()):
        notes.append(sentence(reason("computed_times")))
    synthetic = sentence(reason("data_synthetic"))
    notes += [f"{_head(table, one)}: {synthetic}" for one in table.columns if SYNTHETIC in one.data]
    if any(ANY in row for row in table.rows):
        notes.append("any: the document does not say which")
    sources = dict.fromkeys(one.source for one in table.columns if one.source is not None)
    return [*notes, *(one_line(f"published: not measured with this kit; from {source}") for source in sources)]


def _markdown(table: SuiteTable, _: IO[str]) -> str:
    blanks = _Blanks()
    titles, rows = _cells(table, list(range(len(table.columns))), blanks, " · ")
    align = [":---" if at < len(table.axes) else "---:" for at in range(len(titles))]
    lines = [list(map(markdown, titles)), align, *(list(map(markdown, row)) for row in rows)]
    parts = [
        "  \n".join(map(markdown, _headline(table))),
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
        "\n".join(f"- {markdown(line)}" for line in [*blanks.lines(), *_notes(table)]),
    ]
    return "\n\n".join(parts).rstrip() + "\n"


def _csv(table: SuiteTable, _: IO[str]) -> str:
    """Return a row for each figure, plain numbers in the unit that its name ends in."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    own_titles = ["device", "profile", "source", "figure", "value", "spread", "reason", "computed"]
    writer.writerow([*map(spreadsheet, table.axes), *own_titles])
    for key, values in zip(table.rows, table.values, strict=True):
        for column, own in zip(table.columns, values, strict=True):
            for name in table.figures:
                one = own[name]
                why = "" if one.reason is None else sentence(one.reason)
                where = [column.device, spreadsheet(column.profile), spreadsheet(column.source or "")]
                numbers = ["" if value is None else value for value in (one.value, one.spread)]
                writer.writerow(
                    [*map(spreadsheet, key), *where, name, *numbers, spreadsheet(why), "yes" if one.is_computed else ""]
                )
    return written.getvalue()
