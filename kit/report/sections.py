"""Text for a stream through rich, and titled sections of aligned lines, as `kit show` and `kit doctor` print them."""

from __future__ import annotations

import io
import os
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import IO

from rich.cells import cell_len
from rich.console import Capture, Console
from rich.text import Text

from kit.report.plain import one_line

GAP = "  "
# No file is wider.
UNLIMITED = 10_000
# Of what wraps and goes to no terminal.
WIDTH = 100
# A last column that is narrower is not read: it goes below its line instead.
LAST_MIN = 40
BELOW = 4 * " "


def width_of(stream: IO[str]) -> int:
    """Return the columns of the terminal that `stream` is, and of anything else what can be read."""
    return shutil.get_terminal_size((WIDTH, 0)).columns if stream.isatty() else WIDTH


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


def facts(pairs: Mapping[str, str], width: int = UNLIMITED) -> list[str]:
    """Return a line for each name and value; a value wraps at `width`."""
    return grid([[name, value] for name, value in pairs.items()], width=width)


def grid(rows: Sequence[Sequence[str]], right: Sequence[bool] = (), width: int = UNLIMITED) -> list[str]:
    """Return aligned lines, made printable; a column is as wide as its widest cell, `right` ones aligned at the end.

    What does not fit into `width` goes on below, under the last column.
    """
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
    lines = []
    for row in shown:
        padding = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        at_end = [place < len(right) and right[place] for place in range(len(row))]
        cells = [pad + cell if end else cell + pad for cell, pad, end in zip(row, padding, at_end, strict=True)]
        lines += _wrapped(GAP.join(cells[:-1]), cells[-1].rstrip(), width)
    return lines


def _wrapped(head: str, last: str, width: int) -> list[str]:
    start = head + GAP if head else ""
    if cell_len(start + last) <= width:
        return [(start + last).rstrip()]
    room = width - cell_len(start)
    is_below = room < LAST_MIN
    indent = BELOW if is_below else " " * cell_len(start)
    pieces = textwrap.wrap(last, width - len(indent), break_long_words=False, break_on_hyphens=False)
    lines = [indent + piece for piece in pieces]
    return [start.rstrip(), *lines] if is_below else [start + pieces[0], *lines[1:]]


def render(sections: Mapping[str, Sequence[str]], stream: IO[str]) -> str:
    """Return the sections, titles in colour where `stream` is a terminal that wants it."""
    console = console_for(stream)
    with console.capture() as capture:
        for place, (title, lines) in enumerate(sections.items()):
            if place:
                console.print()
            console.print(Text(title, style="bold cyan"), soft_wrap=True)
            for line in lines:
                console.print(Text(f"{GAP}{line}"), soft_wrap=True)
    return text_of(capture)
