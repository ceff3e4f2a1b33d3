"""A report as text: as wide as the terminal, 100 columns in a file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby, zip_longest
from typing import IO

from rich.cells import cell_len, chop_cells, set_cell_size

from kit.report.report_table import Column, Footnotes, Loud, Report, Table, TableCell
from kit.report.values_in_words import NO_BREAK

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
# The longest title of a column that folds: "against" and a profile's name.
FOLDED_TITLE_MAX = 24
# With the white space around them, at which lines break.
_WORDS = re.compile(rf"[^\S{NO_BREAK}]*[\S{NO_BREAK}]+[^\S{NO_BREAK}]*")
# ECMA-48, 8.3.117.
STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

Panel = dict[int, int]  # columns that stand side by side: index in the table -> width


class _Page:
    """Lines that fit the stream, colored where it is a terminal that wants it."""

    def __init__(self, width: int, *, has_colors: bool) -> None:
        self.width, self._has_colors, self.lines = width, has_colors, list[str]()

    def add(self, words: str = "", style: str = "", *, indent: int = 0, folds: bool = True) -> None:
        """Add a text, below each other what one line does not hold."""
        parts = _folded(words, self.width - indent) if folds else [words]
        self.lines += [f"{' ' * indent}{self.painted(part.rstrip(), style)}" for part in parts]

    def painted(self, words: str, style: str, width: int = 0, *, right: bool = False) -> str:
        """Return words in a style, ``bold red``, at the left or right end of a column."""
        codes = ";".join(STYLES[name] for name in style.split()) if self._has_colors and words else ""
        blank = " " * (width - cell_len(words))
        painted = f"\x1b[{codes}m{words}\x1b[0m" if codes else words
        return f"{blank}{painted}" if right else f"{painted}{blank}"


def laid_out(report: Report, stream: IO[str]) -> str:
    """Return the report laid out for the stream: its width, and colours where it is a terminal that wants them."""
    is_terminal = stream.isatty()
    width = max(WIDTH_MIN, shutil.get_terminal_size((WIDTH, 0)).columns) if is_terminal else WIDTH
    width = UNLIMITED if report.is_wide else width
    # https://no-color.org
    has_colors = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    page, hidden, footnotes = _Page(width, has_colors=has_colors), dict[str, None](), Footnotes()
    seen = set[str]()
    for line in report.headline:
        page.add(line, "bold")
    printed = [_printed(table, report.rows_max) for table in report.tables]
    # Tables that follow each other and have the same columns, titles of the first and last apart, are aligned.
    for _, alike in groupby(printed, lambda table: table.columns[1:-1] if table.has_header else id(table)):
        tables = list(alike)
        panels = _fitted(tables, width)
        shown = {index for panel in panels for index in panel}
        hidden |= {column.title: None for index, column in enumerate(tables[0].columns) if index not in shown}
        seen |= {tables[0].columns[index].title for index in shown}
        for table in tables:
            if report.headline or table is not printed[0]:
                page.add()
            _print_table(page, table, panels, footnotes)
    notes = [*footnotes.lines(), *report.below(hidden.keys() - seen)]
    if notes or hidden or report.hint:
        page.add()
    for line in notes:
        page.add(line, "bold yellow" if isinstance(line, Loud) else "dim")
    if hidden:
        page.add(f"too narrow for: {', '.join(hidden)} (--wide shows all columns)", "dim")
    if report.hint:
        page.add(report.hint, "dim", folds=False)
    return "".join(f"{line.rstrip()}\n" for line in page.lines)


def _folded(words: str, width: int) -> list[str]:
    """Return a text in lines: broken between words, and within those that are wider than a line."""
    lines = [""]
    for word in _WORDS.findall(words):
        if cell_len(lines[-1]) + cell_len(word.rstrip()) <= width:
            lines[-1] += word
        else:
            lines += _parts_of(word, width) if cell_len(word.rstrip()) > width else [word]
    listed = lines if lines[0] or len(lines) == 1 else lines[1:]
    return [line.replace(NO_BREAK, " ") for line in listed]


def _parts_of(word: str, width: int) -> list[str]:
    """Return a word that is wider than a line in lines; a name that holds spaces breaks there after all."""
    return _folded(word.replace(NO_BREAK, " "), width) if NO_BREAK in word else chop_cells(word, width)


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
    for over, indices in _spans(columns, range(len(columns))):
        wider = _panel(columns, widths, [*(panels[-1] if panels else naming), *indices])
        if panels and over and _total(wider.values()) <= width:
            panels[-1] = wider
        elif over:
            panels.append(_panel(columns, widths, [*naming, *indices]))
    return panels


def _panel(columns: Sequence[Column], widths: Sequence[int], indices: Iterable[int]) -> Panel:
    """Return columns side by side, wide enough for what stands over them."""
    panel = {index: widths[index] for index in indices}
    for over, span in _spans(columns, panel):
        panel[span[-1]] += max(0, cell_len(over) - _total([panel[index] for index in span]))
    return panel


def _spans(columns: Sequence[Column], indices: Iterable[int]) -> list[tuple[str, list[int]]]:
    """Return what stands over which columns that follow each other."""
    return [(over, list(span)) for over, span in groupby(indices, lambda index: columns[index].over)]


def _total(widths: Collection[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _print_table(page: _Page, table: Table, panels: Sequence[Panel], footnotes: Footnotes) -> None:
    in_header = table.has_header and table.columns[0].title == table.title
    is_above = bool(table.title) and (not in_header or cell_len(table.title) > panels[0][0])
    if is_above:
        page.add(table.title, "bold cyan", folds=False)
    begin, indent = len(page.lines), _indent(table)
    for panel in panels:
        # With several panels, rows that have nothing in a panel are left out, and panels without a row.
        sided = [index for index in panel if table.columns[index].over]
        rows = [row for row in table.rows if len(panels) == 1 or not all(row[index].is_empty for index in sided)]
        if not rows and len(panels) > 1:
            continue
        if len(page.lines) > begin:
            page.add()
        if sided:
            # Each name stands where its columns begin, or ends where there is only one.
            spans = _spans(table.columns, panel)
            names = [(over, _total([panel[index] for index in span]), len(span) == 1) for over, span in spans]
            page.add(
                (" " * GAP).join(page.painted(over, "", width, right=right) for over, width, right in names), "bold"
            )
        lines = [[TableCell(footnotes.words(row[index]), row[index].style) for index in panel] for row in rows]
        widths = _narrowed([*panel.values()], page.width - indent)
        if table.has_header:
            titles = [TableCell(table.columns[index].title, "bold") for index in panel]
            if in_header and 0 in panel:
                titles[0] = TableCell("" if is_above else table.title, "bold cyan")
            lines.insert(
                0, [cell._replace(words=_cut(cell.words, width)) for cell, width in zip(titles, widths, strict=True)]
            )
        columns = [(table.columns[index], width) for index, width in zip(panel, widths, strict=True)]
        for cells in lines:
            parts = [
                _folded(cell.words, width) if column.folds else [_cut(cell.words, width)]
                for cell, (column, width) in zip(cells, columns, strict=True)
            ]
            for line in zip_longest(*parts, fillvalue=""):
                painted = (
                    page.painted(part.rstrip(), cell.style, width, right=column.right)
                    for part, cell, (column, width) in zip(line, cells, columns, strict=True)
                )
                page.lines.append(f"{' ' * indent}{(' ' * GAP).join(painted)}")
    for sentence in table.sentences:
        page.add(sentence, indent=INDENT)


def _cut(words: str, width: int) -> str:
    """Return words that fit a column."""
    return words if cell_len(words) <= width else f"{set_cell_size(words, width - 1)}…" if width > 0 else ""


def _narrowed(widths: list[int], room: int) -> list[int]:
    """Return widths that together are not wider than the page: each gives as much, and keeps room for a mark."""
    excess = max(0, _total(widths) - room)
    for index, width in enumerate(widths):
        cut = min(max(0, width - 1), round(excess / (len(widths) - index)))
        widths[index], excess = width - cut, excess - cut
    return widths
