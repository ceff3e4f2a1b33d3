"""Text from a profile made harmless for a terminal: one line without control characters.

Profiles come from other people; their names and reasons are shown as they are, but control nothing. Markdown and CSV
escape what they take for markup in `kit.report.formats`.
"""

from __future__ import annotations

from kit.printable import printable_line

# In a cell with nothing to say.
NONE = "–"
# A name or a reason longer than this is not meant to be read.
LENGTH_MAX = 400


def one_line(text: str, length_max: int = LENGTH_MAX) -> str:
    """Return `text` in one line, without control characters, cut where it is too long to read."""
    return printable_line(text if len(text) <= length_max else text[: length_max - 1] + "…")
