"""A value in words: a number with three significant digits and a short unit, a count, a time, a text in one line.

Profiles come from other people; their names and reasons are shown as they are, but control nothing. Markdown and CSV
escape what they take for markup in `kit.report.formats`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from kit.printable import printable_line

if TYPE_CHECKING:
    from kit.profile.fields import Value

T = TypeVar("T")
Units = tuple[tuple[float, str], ...]  # largest first

TIME_UNITS: Units = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
ENERGY_UNITS: Units = ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"))
RATE_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
BYTE_UNITS: Units = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
# End of a name -> units of its value. Every name in a profile ends in its unit.
UNITS = {"_ns": TIME_UNITS, "_j": ENERGY_UNITS, "_b": BYTE_UNITS}
PLAIN_UNITS = {"_w": "W", "_mhz": "MHz", "_pct": "%", "_c": "°C", "_s": "s", "_ppm": "ppm"}
# A number from here on has no decimals, and a separator for thousands.
THOUSAND = 1000
# From here on an estimate is in minutes, and in hours.
MINUTES_FROM_S = 100
HOURS_FROM_S = 100 * 60
# A longer list of values or profiles is cut.
LISTED_MAX = 6
# A name or a reason longer than this is not meant to be read.
LINE_MAX = 400
# A space at which no line ends; where lines have ended, it is printed as any other.
NO_BREAK = "\u00a0"
# Where there is no value.
NONE = "–"


def one_line(text: str, length_max: int = LINE_MAX) -> str:
    """Return `text` in one line, without control characters, cut where it is too long to read."""
    return printable_line(text if len(text) <= length_max else text[: length_max - 1] + "…")


def unbroken(name: str) -> str:
    """Return a name of several words that stays in one line of a text that is folded."""
    return name.replace(" ", NO_BREAK)


def decimals(value: float, digits: int = 3) -> int:
    """Return the number of decimals that show `value` with `digits` significant digits; never below zero."""
    if value == 0 or not math.isfinite(value):
        return 0
    # As rounding may carry into a new digit (9.996 -> 10.0), ask the rounded number.
    return max(0, digits - 1 - math.floor(math.log10(float(f"{abs(value):.{digits - 1}e}"))))


def number(value: float, digits: int = 3) -> str:
    """Return ``2.31``, ``62,600``: rounded to its significant digits."""
    if not math.isfinite(value):
        return str(value)
    rounded = float(f"{value:.{digits - 1}e}")
    if abs(rounded) >= THOUSAND:
        return f"{rounded:,.0f}"
    return f"{value:.{decimals(value, digits)}f}"


def duration(value_ns: float, digits: int = 3) -> str:
    """Return ``4.01 ms``."""
    return _with_unit(value_ns, TIME_UNITS, digits)


def energy(value_j: float) -> str:
    """Return ``1.23 mJ``."""
    return _with_unit(value_j, ENERGY_UNITS)


def size(value_b: float) -> str:
    """Return ``450 MiB``; above that ``1.21 GiB``."""
    return _with_unit(value_b, BYTE_UNITS)


def rate(value: float, unit: str) -> str:
    """Return ``382 GFLOP/s``, ``45.6 GB/s``."""
    return _with_unit(value, tuple((scale, f"{prefix}{unit}") for scale, prefix in RATE_PREFIXES))


def known(value: T | None, show: Callable[[T], str]) -> str:
    """Return a value as `show` writes it, and a dash where there is none."""
    return NONE if value is None else show(value)


def percent(ratio: float) -> str:
    """Return ``+3.1 %`` of 1.031."""
    return f"{100 * (ratio - 1):+.1f} %"


def hundredths(share: float) -> str:
    """Return ``97.25`` of 0.9725."""
    return f"{100 * share:.2f}"


def with_sd(value: float, sd: float | None, show: Callable[[float], str]) -> str:
    """Return a mean over repeats, with their standard deviation where it is known."""
    return show(value) if sd is None else f"{show(value)} (sd {show(sd)})"


def seconds(value_ns: float) -> str:
    """Return ``0.70 s``: two decimals, so that a column of them lines up; ``<0.01 s`` where they would be zero."""
    shown = f"{value_ns / 1e9:,.2f} s"
    return "<0.01 s" if shown == "0.00 s" and value_ns > 0 else shown


def about(estimated_s: float, *, is_least: bool = False) -> str:
    """Return ``about 40 seconds``, ``at least about 5 minutes``, ``about 2.5 hours``: rounded up."""
    if estimated_s < MINUTES_FROM_S:
        words = f"{max(10, 10 * math.ceil(estimated_s / 10))} seconds"
    elif estimated_s < HOURS_FROM_S:
        words = f"{math.ceil(estimated_s / 60)} minutes"
    else:
        words = f"{math.ceil(estimated_s / 1800) / 2:g} hours"
    return f"{'at least ' if is_least else ''}about {words}"


def moment(written: str) -> str:
    """Return ``2026-11-22 06:54`` of a time in ISO 8601; anything else as it is."""
    try:
        return datetime.fromisoformat(written).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return one_line(written)


def counted(count: int, noun: str) -> str:
    """Return ``1 round``, ``8 rounds``, ``3 launches``, ``2 processes``."""
    ending = "es" if noun.endswith(("nch", "s")) else "s"
    return f"{count:,} {noun}{'' if count == 1 else ending}"


def several(words: Sequence[str], separator: str = ", ") -> str:
    """Return ``a, b, c``; of many, the first and how many more."""
    rest = len(words) - LISTED_MAX
    return separator.join(words) if rest <= 1 else f"{separator.join(words[:LISTED_MAX])} and {rest:,} more"


def by_name(name: str, value: Value | bool | None) -> str:
    """Return `value` in the unit that its name ends in: ``needed_b=2**30`` as ``1.00 GiB``; text as one line."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return one_line(value)
    ending = "".join(name.rpartition("_")[1:])
    if ending in UNITS:
        return _with_unit(value, UNITS[ending])
    shown = f"{value:,}" if isinstance(value, int) else number(value)
    return f"{shown} {PLAIN_UNITS.get(ending, '')}".rstrip()


# How a metric's value is shown, by `Metric.unit`.
BY_UNIT: Mapping[str, Callable[[Any], str]] = {
    **{"": str, "count": str, "ns": duration, "s": seconds, "b": size, "j": energy, "number": number, "gain": percent},
    "mhz": "{:,.0f} MHz".format,
    "hundredths": "{:.2f}".format,
    "digits": "{:.3g}".format,
    "percent": "{:.0f}".format,
    "pct": "{:.1f} %".format,
    "gain_2": lambda ratio: f"{100 * (ratio - 1):+.2f} %",
    "per_1k": lambda known: number(1000 * known),
    "s_per_1k": lambda known_ns: number(1000 * known_ns / 1e9),
    "time_s": lambda known_s: duration(1e9 * known_s),
    "score": hundredths,
    "times_pct": lambda known: f"{number(known)} %",
}


def _with_unit(value: float, units: Units, digits: int = 3) -> str:
    # The largest unit of which `value`, as it will be rounded (999.6 µs: 1.00 ms), is at least one; else the smallest.
    fitting = ((scale, unit) for scale, unit in units if float(f"{abs(value) / scale:.{digits - 1}e}") >= 1)
    scale, unit = next(fitting, units[-1])
    return f"{number(value / scale, digits)} {unit}"
