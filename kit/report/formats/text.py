"""Text for a terminal or a file, through rich: at most 100 columns, fewer on a narrower terminal."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import IO

from rich.cells import cell_len
from rich.console import Capture, Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from kit.report.table import Cell, Column, Footnotes, Report, Table

WIDTH = 100
# No terminal is narrower and read.
WIDTH_MIN = 40
# No file is wider.
UNLIMITED = 10_000
GAP = 2
INDENT = 2
# A name is not cut below this, a column that folds not made narrower.
NAME_MIN = 18
FOLDED_MIN = 12
# Of the title of a column that folds: "against" and a profile's name.
FOLDED_TITLE_MAX = 24

Panel = tuple[list[int], list[int]]  # places of the columns that stand side by side, and their widths


def write(report: Report, stream: IO[str]) -> str:
    """Return the report laid out for the stream: its width, and colours where it is a terminal that wants them."""
    width = WIDTH
    if stream.isatty():
        width = max(WIDTH_MIN, min(WIDTH, shutil.get_terminal_size((WIDTH, 0)).columns))
    width = UNLIMITED if report.is_wide else width
    console = console_for(stream, width)
    hidden: dict[str, None] = {}
    footnotes = Footnotes()
    with console.capture() as capture:
        for line in report.headline:
            console.print(Text(line, style="bold"))
        printed = [_shortened(table, report.rows_max) for table in report.tables]
        for tables in _of_like_columns(printed):
            panels = _fitted(tables, width)
            shown = {place for places, _ in panels for place in places}
            columns = tables[0].columns
            hidden |= {column.title: None for place, column in enumerate(columns) if place not in shown}
            for table in tables:
                if report.headline or table is not printed[0]:
                    console.print()
                _print_table(console, table, panels, footnotes)
        _print_notes(console, [*footnotes.lines(), *report.notes], report, list(hidden))
    return text_of(capture)


def console_for(stream: IO[str], width: int = UNLIMITED) -> Console:
    """Return a console to capture from, with colours where `stream` is a terminal that wants them."""
    # TERM=dumb is rich's to heed (and NO_COLOR, https://no-color.org, where it is more than colours).
    color = stream.isatty() and not os.environ.get("NO_COLOR")
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def text_of(capture: Capture) -> str:
    """Return what was captured, without the blanks that pad its lines."""
    return "".join(line.rstrip() + "\n" for line in capture.get().splitlines())


def _shortened(table: Table, rows_max: int | None) -> Table:
    hidden = 0 if rows_max is None else len(table.rows) - rows_max
    if hidden <= 0:
        return table
    return table._replace(
        rows=table.rows[:rows_max], sentences=[f"{hidden:,} more rows: --format csv has all", *table.sentences]
    )


def _of_like_columns(tables: Sequence[Table]) -> Iterator[list[Table]]:
    """Yield tables that follow each other and have the same columns, titles of the first and last apart, together."""
    together: list[Table] = []
    for table in tables:
        if together and not (table.has_header and table.columns[1:-1] == together[0].columns[1:-1]):
            yield together
            together = []
        together.append(table)
    if together:
        yield together


def _fitted(tables: Sequence[Table], width: int) -> list[Panel]:
    """Return what stands side by side: names are cut, columns hidden, then set below each other, or answers folded."""
    columns, places = tables[0].columns, list(range(len(tables[0].columns)))
    width -= _indent(tables[0])
    for rank in (0, *sorted({column.hides for column in columns if column.hides})):
        places = [place for place in places if not rank or columns[place].hides != rank]
        widths = _widths(tables, places)
        if columns[0].width_max is not None:
            widths[0] = max(min(widths[0], NAME_MIN), widths[0] - max(0, _total(widths) - width))
        if _total(widths) <= width:
            return [(places, widths)]
    if any(column.over for column in columns):
        return _below_each_other(tables, width)
    if columns[places[-1]].folds:
        widths[-1] = max(FOLDED_MIN, widths[-1] - (_total(widths) - width))
    return [(places, widths)]


def _below_each_other(tables: Sequence[Table], width: int) -> list[Panel]:
    """Return panels of columns that belong together, as many side by side as fit; each has what names its rows."""
    columns = tables[0].columns
    naming = [place for place, column in enumerate(columns) if not column.over]
    panels: list[list[int]] = []
    for over in dict.fromkeys(column.over for column in columns if column.over):
        places = [place for place, column in enumerate(columns) if column.over == over]
        wider = [*(panels[-1] if panels else naming), *places]
        if panels and _total(_widths(tables, wider)) <= width:
            panels[-1] = wider
        else:
            panels.append([*naming, *places])
    return [(places, _widths(tables, places)) for places in panels]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _widths(tables: Sequence[Table], places: Sequence[int]) -> list[int]:
    """Return the widths of the columns, alike in all tables."""
    widths = []
    for place in places:
        column = tables[0].columns[place]
        titles = [_titles(table)[place] for table in tables]
        cells = [cell_len(_words(table, row, place, Footnotes())) for table in tables for row in table.rows]
        longest = max([*(cell_len(_cut_title(column, title)) for title in titles), *cells])
        widths.append(longest if column.width_max is None else min(longest, column.width_max))
    for over, span in _spans(tables[0], places):
        widths[span[-1]] += max(0, cell_len(over) - _total([widths[at] for at in span]))
    return widths


def _spans(table: Table, places: Sequence[int]) -> list[tuple[str, list[int]]]:
    """Return what stands over which columns that follow each other, by their order in `places`."""
    overs = groupby(enumerate(places), lambda item: table.columns[item[1]].over)
    return [(over, [at for at, _ in span]) for over, span in overs]


def _line_over(table: Table, places: Sequence[int], widths: Sequence[int]) -> str:
    """Return the line above the header: each name where its columns begin, or end where there is one."""
    parts = []
    for over, span in _spans(table, places):
        width = _total([widths[at] for at in span])
        pad = " " * (width - cell_len(over))
        parts.append(over + pad if len(span) > 1 else pad + over)
    return (" " * GAP).join(parts)


def _titles(table: Table) -> list[str]:
    """Return the titles of the columns; the first is the table's own where its column has none."""
    titles = [column.title for column in table.columns]
    return [table.title, *titles[1:]] if _is_in_header(table) else titles


def _cut_title(column: Column, title: str) -> str:
    return title[:FOLDED_TITLE_MAX] if column.folds else title


def _is_in_header(table: Table) -> bool:
    """Whether the table's title stands in its header; else above it, and the table is indented."""
    return table.has_header and not table.columns[0].title


def _indent(table: Table) -> int:
    return INDENT if table.title and not _is_in_header(table) else 0


def _words(table: Table, row: Sequence[Cell], place: int, footnotes: Footnotes) -> str:
    """Return the words of a cell; names are indented under a title that stands in the header."""
    words = footnotes.words(row[place])
    return f"{' ' * INDENT}{words}" if place == 0 and _is_in_header(table) else words


def _print_table(console: Console, table: Table, panels: Sequence[Panel], footnotes: Footnotes) -> None:
    for number, (places, widths) in enumerate(panels):
        if number:
            console.print()
        title, first = Text(table.title, style="bold cyan"), table.title
        if table.title and not number and (_indent(table) or cell_len(first) > widths[0]):
            console.print(title, soft_wrap=True)
            first = ""
        if any(column.over for column in table.columns):
            console.print(Text(_line_over(table, places, widths), style="bold"))
        grid = Grid(box=None, show_header=False, padding=(0, GAP, 0, 0), pad_edge=False)
        for place, width in zip(places, widths, strict=True):
            column = table.columns[place]
            grid.add_column(
                justify="right" if column.right else "left",
                width=width,
                no_wrap=not column.folds,
                overflow="fold" if column.folds else "ellipsis",
            )
        _add_header(grid, table, places, first)
        for row in table.rows:
            if len(panels) == 1 or any(table.columns[place].over and not row[place].is_empty for place in places):
                grid.add_row(*(Text(_words(table, row, place, footnotes), style=row[place].style) for place in places))
        console.print(Padding.indent(grid, _indent(table)))
    for line in table.sentences:
        console.print(Padding(Text(line), (0, 0, 0, INDENT)))
    for explanation in table.explanations:
        remedy = "" if explanation.remedy is None else f"{explanation.remedy}.  "
        # A grid, so that a line that folds goes on under its own beginning.
        grid = Grid.grid(padding=(0, GAP, 0, 0))
        grid.add_row(Text("why", style="yellow"), Text(explanation.evidence))
        grid.add_row("", Text(f"{remedy}{explanation.more}", style="dim"))
        console.print(Padding(grid, (0, 0, 0, INDENT)))


def _add_header(grid: Grid, table: Table, places: Sequence[int], first: str) -> None:
    if table.has_header:
        titles = _titles(table)
        titles[0] = first if _is_in_header(table) else titles[0]
        styles = ["bold cyan" if place == 0 and _is_in_header(table) else "bold" for place in places]
        shown = [
            Text(titles[place], style, no_wrap=True, overflow="ellipsis")
            for place, style in zip(places, styles, strict=True)
        ]
        grid.add_row(*shown)


def _print_notes(console: Console, notes: Sequence[str], report: Report, hidden: Sequence[str]) -> None:
    if notes or hidden or report.hint:
        console.print()
    for line in notes:
        console.print(Text(line, style="bold yellow" if line.split(" ")[0].isupper() else "dim"))
    if hidden:
        console.print(Text(f"hidden: {', '.join(hidden)} (use --wide)", style="dim"))
    if report.hint:
        console.print(Text(report.hint, style="dim"), soft_wrap=report.hint_is_path)
