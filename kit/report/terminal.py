"""Styled lines to a string, with or without colours, and whether a stream wants them."""

from __future__ import annotations

import io
import os
import shutil
import textwrap
from collections.abc import Iterable
from typing import IO

from rich.console import Console
from rich.text import Text

# Wider than any line: the console must never fold or cut one.
UNLIMITED_WIDTH = 1_000_000
# Of running text below tables: readable.
PROSE_WIDTH = 120
# Narrower is a column of words.
PROSE_WIDTH_MIN = 40


def wants_color(stream: IO[str]) -> bool:
    """A terminal that was not told otherwise by NO_COLOR (https://no-color.org) or TERM=dumb."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width_of(stream: IO[str]) -> int | None:
    """Characters in a line of a terminal; null: no terminal, or one that does not say: a line has no end."""
    return (shutil.get_terminal_size((0, 0)).columns or None) if stream.isatty() else None


def wrapped(text: str, style: str, width: int | None = None) -> list[Text]:
    """Running text in lines of at most `width` characters, the later ones indented; long words are not broken."""
    fit = PROSE_WIDTH if width is None else max(PROSE_WIDTH_MIN, min(PROSE_WIDTH, width))
    lines = textwrap.wrap(text, fit, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return [Text(line, style=style) for line in lines]


def to_string(lines: Iterable[Text], *, color: bool) -> str:
    """One string, each line ended, no trailing blanks; ANSI codes only with `color`."""
    if not color:
        return "".join(line.plain.rstrip() + "\n" for line in lines)
    console = Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", no_color=False, width=UNLIMITED_WIDTH
    )
    with console.capture() as capture:
        for line in lines:
            console.print(line, soft_wrap=True, markup=False, highlight=False, emoji=False)
    return capture.get()
