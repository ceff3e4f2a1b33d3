"""Numbers with their nouns and units: ``1 launch``, ``2 launches``, ``9.7 %``, ``24.0 GiB``."""

from __future__ import annotations

# Sounds after which English adds "es".
SIBILANTS = ("s", "x", "ch", "sh")
# From here on two significant digits are whole ones.
WHOLE_FROM_PCT = 10
BYTES_PER_GIB = 2**30


def counted(number: float, noun: str) -> str:
    """`number`, with thousands apart, and `noun` in the plural unless there is exactly one."""
    ending = "" if number == 1 else "es" if noun.endswith(SIBILANTS) else "s"
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun}{ending}"


def percent(value_pct: float) -> str:
    """Two significant digits, and never an exponent: ``0.072 %``, ``9.7 %``, ``100 %``."""
    return f"{value_pct:.2g} %" if abs(value_pct) < WHOLE_FROM_PCT else f"{value_pct:.0f} %"


def gib(size_b: float) -> str:
    """``24.0 GiB``."""
    return f"{size_b / BYTES_PER_GIB:.1f} GiB"
