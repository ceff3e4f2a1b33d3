"""Text from elsewhere, made harmless for a terminal: names in profiles, and names of files, come from other people."""

from __future__ import annotations

import re
import unicodedata

# Shown in place of what may not be printed.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Marks drawn onto one letter: Vietnamese and Hebrew need up to three; dozens cover the lines above and below.
MARKS_MAX = 3
# Letters and symbols by category that show nothing, so that two names look the same with and without them
# (Unicode's Default_Ignorable_Code_Point, and the empty Braille cell).
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def printable(text: str) -> str:
    """Replace control characters, line breaks, direction overrides and what cannot be seen; as long as `text`."""
    if text.isascii() and text.isprintable():
        return text
    shown = "".join(c if c.isprintable() else REPLACEMENT for c in INVISIBLE.sub(REPLACEMENT, text))
    return _without_piled_marks(shown)


def printable_line(text: str) -> str:
    """`printable`, with runs of white space taken as one space."""
    return printable(" ".join(text.split()))


def _without_piled_marks(text: str) -> str:
    kept, marks = [], 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        kept.append(character if marks <= MARKS_MAX else REPLACEMENT)
    return "".join(kept)
