"""Text from a profile made harmless for where it is shown: a terminal, Markdown, a spreadsheet.

Profiles come from other people; their names and reasons are shown as they are, but control nothing.
"""

from __future__ import annotations

import re

from kit.printable import printable_line

# In a cell with nothing to say.
NONE = "–"
# A name or a reason longer than this is not meant to be read.
LENGTH_MAX = 400
# A spreadsheet takes a cell that begins like this for a formula (OWASP, CSV injection).
FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "|")
# Wherever they stand; a letter or digit on both sides makes nothing of `_`, and only some of what follows `#`, `:` and
# `&` makes a reference, an address, an emoji or an entity of them, as `www` does of a full stop.
MARKDOWN_SPECIAL = re.compile(
    r"[\\`*\[\]<>|~$@]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|#(?=\d)|:(?=//|[A-Za-z_+-]|\d+:)|&(?=[#A-Za-z])|(?<=www)\."
)
# At the beginning of a line: a heading, a rule, an item of a list.
MARKDOWN_BEGINNING = re.compile(r"^\s*(?:\d+(?=[.)](?:\s|$))|(?=(?:#+|[-+=]+)(?:\s|$)))")


def one_line(text: str, length_max: int = LENGTH_MAX) -> str:
    """Return `text` in one line, without control characters, cut where it is too long to read."""
    return printable_line(text if len(text) <= length_max else text[: length_max - 1] + "…")


def markdown(text: str) -> str:
    """Return `text` so that Markdown shows it as it is: no link, no markup, no new column."""
    return MARKDOWN_BEGINNING.sub(r"\g<0>\\", MARKDOWN_SPECIAL.sub(r"\\\g<0>", one_line(text)))


def spreadsheet(text: str) -> str:
    """Return `text` so that no spreadsheet takes it for a formula."""
    shown = one_line(text)
    return f"'{shown}" if shown.startswith(FORMULA_BEGINNINGS) else shown
