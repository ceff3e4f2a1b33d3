"""A number with its noun: ``1 launch``, ``2 launches``."""

from __future__ import annotations

# Sounds after which English adds "es".
SIBILANTS = ("s", "x", "ch", "sh")


def counted(number: float, noun: str) -> str:
    """`number`, with thousands apart, and `noun` in the plural unless there is exactly one."""
    ending = "" if number == 1 else "es" if noun.endswith(SIBILANTS) else "s"
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun}{ending}"
