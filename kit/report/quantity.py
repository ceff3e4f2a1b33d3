"""Quantities for people: three or four significant digits and the unit that keeps the number short."""

from __future__ import annotations

import math

from kit.compare.counted import counted
from kit.profile.schema import Estimate

TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
ENERGY_UNITS = ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"))
BYTES_PER_MIB = 2**20
# An interval from a third of a value to three times it says only that there were too few launches.
WIDE = 10.0

Units = tuple[tuple[float, str], ...]


def decimals(value: float, digits: int) -> int:
    """Decimals that show `value` with `digits` significant digits; never below zero."""
    if value == 0 or not math.isfinite(value):
        return 0
    # As rounding may carry into a new digit (9.996 -> 10.0), ask the rounded number.
    rounded = float(f"{abs(value):.{digits - 1}e}")
    return max(0, digits - 1 - math.floor(math.log10(rounded)))


def duration(value_ns: float, digits: int = 3) -> str:
    """``4.01 ms``."""
    return _with_unit(value_ns, TIME_UNITS, digits)


def duration_estimate(estimate: Estimate, digits: int = 4) -> str:
    """``4.012 ms [3.995, 4.030]``: the interval in the unit and with the decimals of the value.

    One whose ends are more than `WIDE` times apart is given in words: its ends would be read as numbers.
    """
    size, unit = _unit(estimate.value, TIME_UNITS, digits)
    places = decimals(estimate.value / size, digits)
    shown = f"{estimate.value / size:.{places}f} {unit}"
    if estimate.low is None or estimate.high is None:
        return shown
    if estimate.high > WIDE * estimate.low:
        return f"{shown} [too wide: {counted(estimate.launches, 'launch')}]"
    return f"{shown} [{estimate.low / size:.{places}f}, {estimate.high / size:.{places}f}]"


def energy(value_j: float, digits: int = 3) -> str:
    """``1.23 mJ``."""
    return _with_unit(value_j, ENERGY_UNITS, digits)


def rate(per_s: float, digits: int = 4) -> str:
    """``32,010``: rounded to its significant digits."""
    places = decimals(per_s, digits)
    if places == 0 and per_s != 0:
        return f"{float(f'{per_s:.{digits - 1}e}'):,.0f}"
    return f"{per_s:,.{places}f}"


def mebibytes(value_b: float) -> str:
    """``612``: whole MiB."""
    return f"{value_b / BYTES_PER_MIB:,.0f}"


def percent(share: float, places: int = 1) -> str:
    """``97.1 %`` of a share of one."""
    return f"{100 * share:.{places}f} %"


def times(ratio: float, digits: int = 3) -> str:
    """``2.31``: a ratio."""
    return f"{ratio:.{decimals(ratio, digits)}f}"


def signed_percent(ratio: float) -> str:
    """``+0.4``: by how many percent a ratio differs from 1."""
    return f"{100 * (ratio - 1):+.1f}".replace("-", "−")


def _with_unit(value: float, units: Units, digits: int) -> str:
    size, unit = _unit(value, units, digits)
    return f"{value / size:.{decimals(value / size, digits)}f} {unit}"


def _unit(value: float, units: Units, digits: int) -> tuple[float, str]:
    """The largest unit of which `value`, as it will be rounded, is at least one; else the smallest."""
    rounded = float(f"{abs(value):.{digits - 1}e}")
    return next(((size, unit) for size, unit in units if rounded >= size), units[-1])
