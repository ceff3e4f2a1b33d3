"""Text from elsewhere made harmless for a terminal: names in profiles, and names of files, come from other people."""

from __future__ import annotations

# Shown in place of what may not be printed.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Return `text`, as long as it was, with control characters and direction overrides replaced."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else REPLACEMENT for character in text)


def printable_line(text: str) -> str:
    """Return `printable` with runs of white space taken as one space."""
    return printable(" ".join(text.split()))


def cut_within(text: str, length_max: int) -> str:
    """Return `text` without its middle where it is too long: of an error both what was wrong and the remedy stay."""
    if len(text) <= length_max:
        return text
    end = length_max // 3
    return f"{text[: length_max - end - 1]}…{text[-end:]}"
