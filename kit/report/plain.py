"""Text from a profile, made harmless and short enough to read: profiles come from other people."""

from __future__ import annotations

from kit.printable import printable

# In a cell with nothing to say.
NONE = "–"
# A name or a reason longer than this is not meant to be read.
LENGTH_MAX = 400
# A sentence of ours may name every cell of a large suite.
SENTENCE_MAX = 10_000


def plain(text: str, length_max: int = LENGTH_MAX) -> str:
    """Replace what could rewrite a terminal or mislead a reader, and cut what is too long to read."""
    return printable(text if len(text) <= length_max else text[: length_max - 1] + "…")


def one_line(text: str, length_max: int = LENGTH_MAX) -> str:
    """`plain`, with runs of white space taken as one space."""
    return plain(" ".join(text.split()), length_max)


def sentence(text: str) -> str:
    """`one_line` of a sentence that names things from a profile."""
    return one_line(text, SENTENCE_MAX)
