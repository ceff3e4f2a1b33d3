"""Axes with a unit, and logarithmic ones whose ticks can be read over a tenth as over four decades."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from kit.report.quantity import THOUSAND, TIME_UNITS

# Which numbers of a decade have a tick, where the largest value is less than so many times the smallest. Below the
# first, steps are even: powers of ten would leave one tick or none.
NARROW = 3.0
TICKS = {20.0: (1, 2, 3, 5), 2000.0: (1, 2, 5)}
# So few values of an axis are its ticks, unless two of them lie closer than this share of the axis.
TICKED_VALUES_MAX = 8
TICK_DISTANCE = 0.08
# Room around the points, as a share of the logarithmic axis.
MARGIN = 0.06
# An interval of two rounds may be as wide as the page is high: by more than this times it does not widen an axis.
INTERVAL_MAX = 2.0


def time_unit(values_ns: Iterable[float]) -> tuple[float, str]:
    """Return nanoseconds in the unit that keeps these numbers short, and the unit."""
    known = list(values_ns)
    middle = math.sqrt(min(known)) * math.sqrt(max(known))
    return next((one for one in TIME_UNITS if middle >= one[0]), TIME_UNITS[-1])


def log_y(axes: Iterable[Axes], values: Sequence[float], ends: Sequence[float] = ()) -> None:
    """Make the y axes logarithmic, and wide enough for all values, above zero, and for the ends of intervals."""
    low, high = min(values), max(values)
    low, high = (
        max(low / INTERVAL_MAX, min([low, *ends])),
        min(high * INTERVAL_MAX, max([high, *ends])),
    )
    room = max((high / low) ** MARGIN, 1.01)
    for one in axes:
        one.set_ylim(low / room, high * room)  # first: a new scale would look for limits of its own
        one.set_yscale("log")
        log_ticks(one.yaxis, low, high)


def log_x(axes: Iterable[Axes], values: Iterable[float]) -> None:
    """Make the x axes logarithmic, and wide enough for all values, above zero."""
    known = list(values)
    low, high = min(known), max(known)
    room = max((high / low) ** MARGIN, 1.1)
    for one in axes:
        one.set_xlim(low / room, high * room)
        one.set_xscale("log")
        log_ticks(one.xaxis, low, high)


def ticks_at(axes: Iterable[Axes], values: Iterable[float]) -> None:
    """Put a tick of the logarithmic x axes at each value, where they are few and lie apart."""
    known = sorted(set(values))
    steps = [math.log(b / a) for a, b in pairwise(known)]
    if len(known) <= TICKED_VALUES_MAX and all(step >= TICK_DISTANCE * sum(steps) for step in steps):
        for one in axes:
            one.xaxis.set_major_locator(FixedLocator(known))


def whole_x(axes: Iterable[Axes]) -> None:
    """Put ticks of the x axes at whole numbers."""
    for one in axes:
        one.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Set ticks that suit values from `low` to `high` on a logarithmic axis, and plain numbers at them."""
    if high < NARROW * low:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    else:
        axis.set_major_locator(LogLocator(subs=next((own for end, own in TICKS.items() if high < end * low), (1,))))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def plain(value: float) -> str:
    """Return ``0.05``, ``2.5``, ``10,000``."""
    return f"{value:,.0f}" if THOUSAND <= abs(value) < THOUSAND**4 else f"{value:g}"
