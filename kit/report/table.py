"""A comparison as a table for a terminal or a text file, through rich.

At most 100 columns by default; a narrower terminal gets fewer columns, and `--wide` all of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kit.compare.rows import Comparison, GroupRows, Row
from kit.report.columns import ANSWER, NAME, Column, alike, columns_of, titles_of
from kit.report.conclusions import group_sentences
from kit.report.sections import UNLIMITED, console_for, text_of
from kit.report.words import RenderOptions, Titles, headline, mismatch_lines, note_lines, why_lines

WIDTH = 100
# No terminal is narrower and read.
WIDTH_MIN = 40
GAP = 2
INDENT = 2
# Columns that are left out where the table is too wide, one after the other.
DISPENSABLE = ("compile", "start", "memory", "energy/sample", "samples/s")
# A name longer than this, as of a profile, is cut, and where the table is too wide a shorter one: CSV has it whole.
NAME_MAX = 34
NAME_MIN = 18
ANSWER_MIN = 12
# Of "against" and a profile's name, above a column of answers.
BASELINE_MAX = 24
HINT = "kit compare {file} --wide for intervals, p95, CPU, phases · kit show {file} for every launch"
VERDICT_STYLES = {"faster": "green", "slower": "red", "same": "", "unresolved": "yellow"}
# Of a group with more rows than this a table is not read: other formats have all.
ROWS_MAX = 40


def render(comparison: Comparison, options: RenderOptions) -> str:
    """Return the comparison laid out for the stream: its width, and colours where it is a terminal."""
    titles, stream, wide = options.titles, options.stream, options.wide
    width = WIDTH
    if stream.isatty():
        width = max(WIDTH_MIN, min(WIDTH, shutil.get_terminal_size((WIDTH, 0)).columns))
    console = console_for(stream, UNLIMITED if wide else width)
    left_out: dict[str, None] = {}
    with console.capture() as capture:
        for line in headline(comparison, titles):
            console.print(Text(line, style="bold"))
        for groups in alike(comparison):
            every = columns_of(groups, by=comparison.by, wide=wide)
            columns, widths = _fitted(groups, every, UNLIMITED if wide else width)
            left_out |= {column.title: None for column in every if column not in columns}
            for group in groups:
                _print_group(console, group, columns, widths, titles, wide=wide)
        console.print()
        for line in [*note_lines(comparison), *mismatch_lines(comparison)]:
            console.print(Text(line, style="bold yellow" if line.split(" ")[0].isupper() else "dim"))
        if left_out:
            console.print(Text(f"left out for lack of width: {', '.join(left_out)} (--wide has all)", style="dim"))
        if comparison.kind == "cells":
            # A real path is to be copied: it stays in one piece.
            hint = Text(HINT.format(file=options.file or "FILE"), style="dim")
            console.print(hint, soft_wrap=options.file is not None)
    return text_of(capture)


def _fitted(groups: Sequence[GroupRows], columns: Sequence[Column], room: int) -> tuple[list[Column], list[int]]:
    """Return the columns that fit, and their widths: names are cut, then columns left out, then answers folded."""
    left = list(columns)
    for title in ("", *DISPENSABLE):
        left = [column for column in left if not title or column.title != title]
        widths = _widths(groups, left)
        widths[0] = max(min(widths[0], NAME_MIN), widths[0] - max(0, _total_width(widths) - room))
        if _total_width(widths) <= room:
            return left, widths
    widths[-1] = max(ANSWER_MIN, widths[-1] - (_total_width(widths) - room))
    return left, widths


def _total_width(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _widths(groups: Sequence[GroupRows], columns: Sequence[Column]) -> list[int]:
    """Return the widths of the columns, alike in all groups."""
    titles = [titles_of(columns, group) for group in groups]
    titles = [[*others, last[:BASELINE_MAX]] for *others, last in titles]
    rows = [row for group in groups for row in group.rows[:ROWS_MAX]]
    cells = [[_cell(row, column).plain for column in columns] for row in rows]
    widths = [max(map(cell_len, shown)) for shown in zip(*titles, *cells, strict=True)] or [0] * len(columns)
    return [min(widths[0], NAME_MAX), *widths[1:]]


def _print_group(
    console: Console, group: GroupRows, columns: Sequence[Column], widths: Sequence[int], titles: Titles, *, wide: bool
) -> None:
    table = Table(box=None, show_header=False, padding=(0, GAP, 0, 0), pad_edge=False)
    for column, width in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "right" if column.right else "left"
        folds = column is ANSWER
        table.add_column(justify=justify, width=width, no_wrap=not folds, overflow="fold" if folds else "ellipsis")
    # The title of a group may be longer than its rows' names: these are indented under it.
    first, *others = titles_of(columns, group)
    console.print()
    if cell_len(first) > widths[0]:
        console.print(Text(first, style="bold cyan"), soft_wrap=True)
        first = ""
    table.add_row(
        Text(first, style="bold cyan"), *(Text(one, style="bold", no_wrap=True, overflow="ellipsis") for one in others)
    )
    for row in group.rows[:ROWS_MAX]:
        table.add_row(*(_cell(row, column) for column in columns))
    console.print(table)
    hidden = len(group.rows) - ROWS_MAX
    said = [f"{hidden:,} more rows: --format csv has all"] if hidden > 0 else []
    for line in [*said, *group_sentences(group, titles)]:
        console.print(Padding(Text(line), (0, 0, 0, INDENT)))
    for found in why_lines(group, whole=wide):
        tried = "" if found.remedy is None else f"{found.remedy}.  "
        # A grid, so that a line that folds goes on under its own beginning.
        grid = Table.grid(padding=(0, GAP, 0, 0))
        grid.add_row(Text("why", style="yellow"), Text(found.evidence))
        grid.add_row("", Text(f"{tried}{found.more}", style="dim"))
        console.print(Padding(grid, (0, 0, 0, INDENT)))


def _cell(row: Row, column: Column) -> Text:
    style = "red" if row.numbers.step_ns is None else ""
    if column is ANSWER and row.versus is not None:
        style = VERDICT_STYLES[row.versus.verdict]
    return Text(f"{' ' * INDENT if column is NAME else ''}{column.show(row)}", style=style)
