"""Text from elsewhere made harmless for a terminal: names in profiles, and names of files, come from other people."""

from __future__ import annotations

import unicodedata

# Shown in place of what may not be printed.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Marks drawn onto one letter: Vietnamese and Hebrew need up to three; dozens cover the lines above and below.
MARKS_MAX = 3


def printable(text: str) -> str:
    """Return `text`, as long as it was, with control characters, direction overrides and piled marks replaced."""
    if text.isascii() and text.isprintable():
        return text
    shown, marks = [], 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        shown.append(character if character.isprintable() and marks <= MARKS_MAX else REPLACEMENT)
    return "".join(shown)


def printable_line(text: str) -> str:
    """Return `printable` with runs of white space taken as one space."""
    return printable(" ".join(text.split()))
