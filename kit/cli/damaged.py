"""What is said of a journal's lines that could not be read back."""

from __future__ import annotations

import click


def say_damaged(lines: int, file: str, becomes: str) -> None:
    """Tell on standard error how many lines of `file` were lost and what `becomes` of their launches; nothing of none.

    Args:
        lines: how many.
        file: "journal", "file".
        becomes: "run again", "left out".
    """
    if not lines:
        return
    what, held = ("line of the {} is", "it") if lines == 1 else ("lines of the {} are", "they")
    click.echo(f"kit: {lines} {what.format(file)} damaged; what {held} held is {becomes}", err=True)
