"""Text from a profile, made harmless and short enough to read: profiles come from other people."""

from __future__ import annotations

from kit.printable import printable

# In a cell with nothing to say.
NONE = "–"
# A name or a reason longer than this is not meant to be read.
LENGTH_MAX = 400


def plain(text: str) -> str:
    """Replace what could rewrite a terminal or mislead a reader, and cut what is too long to read."""
    return printable(text if len(text) <= LENGTH_MAX else text[: LENGTH_MAX - 1] + "…")


def one_line(text: str) -> str:
    """`plain`, with runs of white space taken as one space."""
    return plain(" ".join(text.split()))
