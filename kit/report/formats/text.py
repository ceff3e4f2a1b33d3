"""Text through rich: as wide as the terminal, 100 columns in a file."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby, pairwise, takewhile
from operator import eq
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from kit.report.table import Column, Footnotes, Report, Table

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
# Of a name, after what another begins with, too: a few letters, and the mark that it is cut.
CUT_KEEPS = 6
# Of the title of a column that folds: "against" and a profile's name.
FOLDED_TITLE_MAX = 24

Panel = dict[int, int]  # columns that stand side by side: place in the table -> width


def write(report: Report, stream: IO[str]) -> str:
    """Return the report laid out for the stream: its width, and colours where it is a terminal that wants them."""
    width = WIDTH
    if stream.isatty():
        width = max(WIDTH_MIN, shutil.get_terminal_size((WIDTH, 0)).columns)
    width = UNLIMITED if report.is_wide else width
    console = _console(stream, width)
    hidden: dict[str, None] = {}
    footnotes = Footnotes()
    with console.capture() as capture:
        for line in report.headline:
            console.print(Text(line, style="bold"))
        printed = [_printed(table, report.rows_max) for table in report.tables]
        for tables in _of_like_columns(printed):
            panels = _fitted(tables, width)
            shown = {place for panel in panels for place in panel}
            hidden |= {column.title: None for place, column in enumerate(tables[0].columns) if place not in shown}
            for table in tables:
                if report.headline or table is not printed[0]:
                    console.print()
                _print_table(console, table, panels, footnotes)
        notes = [*footnotes.lines(), *report.notes]
        if notes or hidden or report.hint:
            console.print()
        for line in notes:
            console.print(Text(line, style="bold yellow" if line.split(" ")[0].isupper() else "dim"))
        if hidden:
            console.print(Text(f"too narrow for: {', '.join(hidden)} (--wide shows all columns)", style="dim"))
        if report.hint:
            console.print(Text(report.hint, style="dim"), soft_wrap=True)
    # Without the blanks that pad its lines.
    return "".join(line.rstrip() + "\n" for line in capture.get().splitlines())


def _console(stream: IO[str], width: int) -> Console:
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


def _printed(table: Table, rows_max: int | None) -> Table:
    """Return the table with as many rows as are read; its title heads the column of names if that has none."""
    rows, columns, sentences = table.rows[:rows_max], table.columns, table.sentences
    if len(rows) < len(table.rows):
        sentences = [f"{len(table.rows) - len(rows):,} more rows: --format csv has all", *sentences]
    if table.has_header and not columns[0].title:
        columns = [columns[0]._replace(title=table.title), *columns[1:]]
        rows = [[name._replace(words=f"{' ' * INDENT}{name.words}"), *others] for name, *others in rows]
    return table._replace(columns=columns, rows=rows, sentences=sentences)


def _is_in_header(table: Table) -> bool:
    """Whether the table's title stands in its header; else above it, and the table is indented."""
    return table.has_header and table.columns[0].title == table.title


def _indent(table: Table) -> int:
    return INDENT if table.title and not _is_in_header(table) else 0


def _of_like_columns(tables: Sequence[Table]) -> list[list[Table]]:
    """Return tables that follow each other and have the same columns, titles of the first and last apart, together."""
    alike = groupby(tables, lambda table: table.columns[1:-1] if table.has_header else id(table))
    return [list(together) for _, together in alike]


def _fitted(tables: Sequence[Table], width: int) -> list[Panel]:
    """Return what stands side by side: names are cut, columns hidden, then set below each other, or answers folded."""
    columns, widths = tables[0].columns, _widths(tables)
    if width == UNLIMITED and any(column.over for column in columns):
        return _below_each_other(columns, widths, WIDTH)
    width -= _indent(tables[0])
    places = list(range(len(columns)))
    for rank in sorted({0, *(column.hides for column in columns)}):
        places = [place for place in places if not rank or columns[place].hides != rank]
        panel = _panel(columns, widths, places)
        if columns[0].width_max is not None:
            panel[0] = max(min(panel[0], _name_min(tables)), panel[0] - max(0, _total(panel.values()) - width))
        if _total(panel.values()) <= width:
            return [panel]
    if any(column.over for column in columns):
        return _below_each_other(columns, widths, width)
    if columns[places[-1]].folds:
        panel[places[-1]] = max(FOLDED_MIN, panel[places[-1]] - (_total(panel.values()) - width))
    return [panel]


def _name_min(tables: Sequence[Table]) -> int:
    """Return how far names may be cut: not so far that two of a table read alike."""
    names = (sorted(row[0].words for row in table.rows) for table in tables)
    pairs = (pair for of_table in names for pair in pairwise(of_table))
    shared = (len([*takewhile(bool, map(eq, *pair))]) for pair in pairs)
    return max([NAME_MIN, *(length + CUT_KEEPS for length in shared)])


def _below_each_other(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[Panel]:
    """Return panels of columns that belong together, as many side by side as fit; each has what names its rows."""
    naming = [place for place, column in enumerate(columns) if not column.over]
    panels: list[Panel] = []
    for over in dict.fromkeys(column.over for column in columns if column.over):
        places = [place for place, column in enumerate(columns) if column.over == over]
        wider = _panel(columns, widths, [*(panels[-1] if panels else naming), *places])
        if panels and _total(wider.values()) <= width:
            panels[-1] = wider
        else:
            panels.append(_panel(columns, widths, [*naming, *places]))
    return panels


def _widths(tables: Sequence[Table]) -> list[int]:
    """Return the widths of the columns, alike in all tables; a footnote's letters take three."""
    widths = []
    for place, column in enumerate(tables[0].columns):
        titles = [table.columns[place].title[: FOLDED_TITLE_MAX if column.folds else None] for table in tables]
        cells = [row[place] for table in tables for row in table.rows]
        longest = max(*map(cell_len, titles), *(cell_len(cell.words) + 3 * bool(cell.because) for cell in cells), 0)
        widths.append(longest if column.width_max is None else min(longest, column.width_max))
    return widths


def _panel(columns: Sequence[Column], widths: Sequence[int], places: Iterable[int]) -> Panel:
    """Return columns side by side, wide enough for what stands over them."""
    panel = {place: widths[place] for place in places}
    for over, span in _spans(columns, panel):
        panel[span[-1]] += max(0, cell_len(over) - _total([panel[place] for place in span]))
    return panel


def _spans(columns: Sequence[Column], panel: Panel) -> list[tuple[str, list[int]]]:
    """Return what stands over which columns that follow each other."""
    return [(over, list(span)) for over, span in groupby(panel, lambda place: columns[place].over)]


def _total(widths: Collection[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _print_table(console: Console, table: Table, panels: Sequence[Panel], footnotes: Footnotes) -> None:
    in_header = _is_in_header(table)
    is_above = bool(table.title) and (not in_header or cell_len(table.title) > panels[0][0])
    if is_above:
        console.print(Text(table.title, style="bold cyan"), soft_wrap=True)
    filled = [panel for panel in panels if len(panels) == 1 or not _is_empty(table, panel)]
    for number, panel in enumerate(filled):
        if number:
            console.print()
        if any(column.over for column in table.columns):
            console.print(Text(_line_over(table.columns, panel), style="bold"))
        grid = Grid(box=None, show_header=table.has_header, header_style="", padding=(0, GAP, 0, 0), pad_edge=False)
        for place, width in panel.items():
            column, is_title = table.columns[place], in_header and place == 0
            title = "" if is_title and is_above else column.title
            grid.add_column(
                Text(title, "bold cyan" if is_title else "bold", no_wrap=True, overflow="ellipsis"),
                justify="right" if column.right else "left",
                width=width,
                no_wrap=not column.folds,
                overflow="fold" if column.folds else "ellipsis",
            )
        for row in table.rows:
            if len(panels) == 1 or not _is_empty(table._replace(rows=[row]), panel):
                grid.add_row(*(Text(footnotes.words(row[place]), row[place].style) for place in panel))
        console.print(Padding.indent(grid, _indent(table)))
    for line in table.sentences:
        console.print(Padding.indent(Text(line), INDENT))


def _is_empty(table: Table, panel: Panel) -> bool:
    """Whether nothing stands in these columns but what names the rows."""
    return all(row[place].is_empty for row in table.rows for place in panel if table.columns[place].over)


def _line_over(columns: Sequence[Column], panel: Panel) -> str:
    """Return the line above the header: each name where its columns begin, or end where there is one."""
    parts = []
    for over, span in _spans(columns, panel):
        part = Text(over)
        part.align("left" if len(span) > 1 else "right", _total([panel[place] for place in span]))
        parts.append(part.plain)
    return (" " * GAP).join(parts)
