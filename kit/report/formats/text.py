"""Text through rich: as wide as the terminal, 100 columns in a file."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from kit.report.table import Column, Footnotes, Loud, Report, Table

WIDTH = 100
# No terminal is narrower and read.
WIDTH_MIN = 40
# No file is wider.
UNLIMITED = 10_000
GAP = 2
INDENT = 2
# A column of names is not made narrower than this, a column that folds not than that.
NAME_MIN = 18
FOLDED_MIN = 12
# Of the title of a column that folds: "against" and a profile's name.
FOLDED_TITLE_MAX = 24

Panel = dict[int, int]  # columns that stand side by side: index in the table -> width


def write(report: Report, stream: IO[str]) -> str:
    """Return the report laid out for the stream: its width, and colours where it is a terminal that wants them."""
    width = WIDTH
    if stream.isatty():
        width = max(WIDTH_MIN, shutil.get_terminal_size((WIDTH, 0)).columns)
    width = UNLIMITED if report.is_wide else width
    # rich heeds TERM=dumb (and NO_COLOR, https://no-color.org, where it is more than colours).
    color = stream.isatty() and not os.environ.get("NO_COLOR")
    console = Console(
        file=io.StringIO(), width=width, force_terminal=color, color_system="standard" if color else None,
        highlight=False, markup=False, emoji=False,
    )  # fmt: skip
    hidden: dict[str, None] = {}
    footnotes = Footnotes()
    with console.capture() as capture:
        for line in report.headline:
            console.print(Text(line, style="bold"))
        printed = [_printed(table, report.rows_max) for table in report.tables]
        # Tables that follow each other and have the same columns, titles of the first and last apart, are aligned.
        for _, alike in groupby(printed, lambda table: table.columns[1:-1] if table.has_header else id(table)):
            tables = list(alike)
            panels = _fitted(tables, width)
            shown = {index for panel in panels for index in panel}
            hidden |= {column.title: None for index, column in enumerate(tables[0].columns) if index not in shown}
            for table in tables:
                if report.headline or table is not printed[0]:
                    console.print()
                _print_table(console, table, panels, footnotes)
        notes = [*footnotes.lines(), *report.notes]
        if notes or hidden or report.hint:
            console.print()
        for line in notes:
            console.print(Text(line, style="bold yellow" if isinstance(line, Loud) else "dim"))
        if hidden:
            console.print(Text(f"too narrow for: {', '.join(hidden)} (--wide shows all columns)", style="dim"))
        if report.hint:
            console.print(Text(report.hint, style="dim"), soft_wrap=True)
    # Without the blanks that pad its lines.
    return "".join(line.rstrip() + "\n" for line in capture.get().splitlines())


def _printed(table: Table, rows_max: int | None) -> Table:
    """Return the table with as many rows as are read; its title heads the column of names if that has none."""
    rows, columns, sentences = table.rows[:rows_max], table.columns, table.sentences
    if len(rows) < len(table.rows):
        sentences = [f"{len(table.rows) - len(rows):,} more rows: --format csv has all", *sentences]
    if table.has_header and not columns[0].title:
        columns = [columns[0]._replace(title=table.title), *columns[1:]]
        rows = [[name._replace(words=f"{' ' * INDENT}{name.words}"), *others] for name, *others in rows]
    return table._replace(columns=columns, rows=rows, sentences=sentences)


def _indent(table: Table) -> int:
    """Return by how much a table is indented below its title, if that does not stand in its header."""
    return INDENT if table.title and not (table.has_header and table.columns[0].title == table.title) else 0


def _fitted(tables: Sequence[Table], width: int) -> list[Panel]:
    """Return what stands side by side: columns are hidden, then set below each other, or answers folded."""
    columns, is_sided, widths = tables[0].columns, any(column.over for column in tables[0].columns), list[int]()
    for index, column in enumerate(columns):
        titles = [table.columns[index].title[: FOLDED_TITLE_MAX if column.folds else None] for table in tables]
        cells = [row[index] for table in tables for row in table.rows]
        # A footnote's letters take three.
        longest = max(*map(cell_len, titles), *(cell_len(cell.words) + 3 * bool(cell.because) for cell in cells), 0)
        widths.append(longest if column.width_max is None else min(longest, column.width_max))
    room, indices = width - _indent(tables[0]), list(range(len(columns)))
    # A title that is wider than all names can stand above its column.
    names = max([NAME_MIN, *(cell_len(row[0].words) for table in tables for row in table.rows)])
    for rank in sorted({0, *(column.hides for column in columns)} if width < UNLIMITED or not is_sided else ()):
        indices = [index for index in indices if not rank or columns[index].hides != rank]
        panel = _panel(columns, widths, indices)
        panel[0] = max(min(names, panel[0]), panel[0] - max(0, _total(panel.values()) - room))
        if _total(panel.values()) <= room:
            return [panel]
    if is_sided:
        return _below_each_other(columns, widths, min(room, WIDTH) if width == UNLIMITED else room)
    if columns[indices[-1]].folds:
        panel[indices[-1]] = max(FOLDED_MIN, panel[indices[-1]] - (_total(panel.values()) - room))
    return [panel]


def _below_each_other(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[Panel]:
    """Return panels of columns that belong together, as many side by side as fit; each has what names its rows."""
    naming = [index for index, column in enumerate(columns) if not column.over]
    panels: list[Panel] = []
    for over in dict.fromkeys(column.over for column in columns if column.over):
        indices = [index for index, column in enumerate(columns) if column.over == over]
        wider = _panel(columns, widths, [*(panels[-1] if panels else naming), *indices])
        if panels and _total(wider.values()) <= width:
            panels[-1] = wider
        else:
            panels.append(_panel(columns, widths, [*naming, *indices]))
    return panels


def _panel(columns: Sequence[Column], widths: Sequence[int], indices: Iterable[int]) -> Panel:
    """Return columns side by side, wide enough for what stands over them."""
    panel = {index: widths[index] for index in indices}
    for over, span in _spans(columns, panel):
        panel[span[-1]] += max(0, cell_len(over) - _total([panel[index] for index in span]))
    return panel


def _spans(columns: Sequence[Column], panel: Panel) -> list[tuple[str, list[int]]]:
    """Return what stands over which columns that follow each other."""
    return [(over, list(span)) for over, span in groupby(panel, lambda index: columns[index].over)]


def _total(widths: Collection[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _print_table(console: Console, table: Table, panels: Sequence[Panel], footnotes: Footnotes) -> None:
    in_header = table.has_header and table.columns[0].title == table.title
    is_above = bool(table.title) and (not in_header or cell_len(table.title) > panels[0][0])
    if is_above:
        console.print(Text(table.title, style="bold cyan"), soft_wrap=True)
    is_first = True
    for panel in panels:
        # Of several panels, rows that have nothing in a panel are left out, and panels without a row.
        sided = [index for index in panel if table.columns[index].over]
        rows = [row for row in table.rows if len(panels) == 1 or not all(row[index].is_empty for index in sided)]
        if not rows and len(panels) > 1:
            continue
        if not is_first:
            console.print()
        is_first = False
        if sided:
            # Each name stands where its columns begin, or ends where there is one.
            parts = [(Text(over), span) for over, span in _spans(table.columns, panel)]
            for part, span in parts:
                part.align("left" if len(span) > 1 else "right", _total([panel[index] for index in span]))
            console.print(Text((" " * GAP).join(part.plain for part, _ in parts), style="bold"))
        grid = Grid(box=None, show_header=table.has_header, header_style="", padding=(0, GAP, 0, 0), pad_edge=False)
        for index, width in panel.items():
            column, is_title = table.columns[index], in_header and index == 0
            title = Text("" if is_title and is_above else column.title, "bold cyan" if is_title else "bold")
            title.no_wrap, title.overflow = True, "ellipsis"
            grid.add_column(
                title, justify="right" if column.right else "left", width=width, no_wrap=not column.folds,
                overflow="fold" if column.folds else "ellipsis",
            )  # fmt: skip
        for row in rows:
            grid.add_row(*(Text(footnotes.words(row[index]), row[index].style) for index in panel))
        console.print(Padding.indent(grid, _indent(table)))
    for line in table.sentences:
        console.print(Padding.indent(Text(line), INDENT))
