"""COLUMNS and LINES, which libraries take for numbers without asking."""

from __future__ import annotations

import os

DIGITS_MAX = 6


def drop_odd_sizes() -> None:
    """Remove from this process's environment what is no number; the terminal then says how large it is."""
    for name in ("COLUMNS", "LINES"):
        value = os.environ.get(name, "")
        if not (value.isascii() and value.isdigit() and len(value) <= DIGITS_MAX):
            os.environ.pop(name, None)
