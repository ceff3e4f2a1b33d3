"""Text from a profile, made harmless: profiles come from other people."""

from __future__ import annotations

# Shown in place of what may not be printed.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# In a cell with nothing to say.
NONE = "–"
# A name or a reason longer than this is not meant to be read.
LENGTH_MAX = 400


def plain(text: str) -> str:
    """Replace control characters, escapes, line breaks and direction overrides, which could rewrite a terminal."""
    shown = text if len(text) <= LENGTH_MAX else text[: LENGTH_MAX - 1] + "…"
    return "".join(character if character.isprintable() else REPLACEMENT for character in shown)


def one_line(text: str) -> str:
    """`plain`, with runs of white space taken as one space."""
    return plain(" ".join(text.split()))
