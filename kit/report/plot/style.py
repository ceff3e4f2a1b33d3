"""How pictures look: points on lines that differ without colour, too, and logarithmic axes that can be read."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from kit.report.quantity import TIME_UNITS

# Okabe and Ito's colours, which suit any colour vision; without yellow, which is hardly visible on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
# Seven, eight and five have no common divisor: 280 lines differ in one of them.
LOOKS = cycler(color=COLOURS * 40) + cycler(marker=MARKERS * 35) + cycler(linestyle=LINES * 56)
GREY, BAND = "#555555", "#F3F3F3"
TITLE_PT, TEXT_PT, TICK_PT, SMALL_PT = 10, 8, 7, 6.5
CROWDED = 20  # a line of more points than this has small markers
# Below this ratio of the largest value to the smallest, ticks have equal distances: powers of ten would leave one or
# none. Above it, the ratio decides which multiples of a power of ten have a tick.
NARROW = 3.0
TICKS = {20.0: (1, 2, 3, 5), 2000.0: (1, 2, 5), math.inf: (1,)}
# Up to this count, the values are the ticks, unless two of them are closer than this share of the axis.
TICKED_VALUES_MAX, TICK_DISTANCE = 8, 0.08
MARGIN = 0.06  # around the values, as a share of the logarithmic axis
# An interval of two rounds can be as wide as the page is high: it widens an axis by no more than this factor.
INTERVAL_MAX = 2.0

Look = dict[str, Any]  # colour, marker and style of a line, as matplotlib calls them


@contextmanager
def our_style() -> Iterator[None]:
    """Draw and save in matplotlib's defaults with our changes, whatever the user's own matplotlibrc says."""
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rc("font", size=TEXT_PT)
        mpl.rc("axes", titlesize=TEXT_PT, titlelocation="left", labelsize=TEXT_PT, grid=True, axisbelow=True)
        mpl.rc("axes.spines", top=False, right=False)
        mpl.rc("xtick", labelsize=TICK_PT)
        mpl.rc("ytick", labelsize=TICK_PT)
        mpl.rc("legend", fontsize=TICK_PT, frameon=False, handlelength=2.8)
        mpl.rc("grid", color="#DDDDDD", linewidth=0.5)
        mpl.rc("lines", linewidth=1.2, markersize=4)
        mpl.rc("text", parse_math=False)  # names come from other people: a `$` in a name is a `$`
        # Text stays text, which can be searched and copied; ids are derived from the salt, so that bytes repeat.
        mpl.rc("svg", fonttype="none", hashsalt="kit")
        # A name may be in a script that the font lacks: an empty box in the picture shows it.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """Return the look of each name, in their order."""
    return dict(zip(dict.fromkeys(names), LOOKS(), strict=False))


def marker_size(points: int) -> float:
    """Return the size of a marker, in points, on a line of so many points."""
    return 2.5 if points > CROWDED else 4.0


def time_unit(times_ns: Iterable[float]) -> tuple[float, str]:
    """Return the unit that keeps these times short: how many nanoseconds it is, and its name."""
    logs = [math.log(time_ns) for time_ns in times_ns]
    middle = math.exp((min(logs) + max(logs)) / 2)
    return next((unit for unit in TIME_UNITS if middle >= unit[0]), TIME_UNITS[-1])


def set_log(
    axes: Axes, name: Literal["x", "y"], values: Sequence[float], ends: Sequence[float] = (), *, ticked: bool = False
) -> None:
    """Make an axis logarithmic, wide enough for values and ends of intervals, with ticks at the values if `ticked`."""
    low = max(min(values) / INTERVAL_MAX, min([*values, *ends]))
    high = min(max(values) * INTERVAL_MAX, max([*values, *ends]))
    room = max((high / low) ** MARGIN, 1.01)
    # The limits come first: a new scale would look for its own.
    axes.set(**{f"{name}lim": (low / room, high * room), f"{name}scale": "log"})
    axis, known = axes.xaxis if name == "x" else axes.yaxis, np.unique(values)
    steps = np.diff(np.log(known))
    if ticked and len(known) <= TICKED_VALUES_MAX and all(steps >= TICK_DISTANCE * sum(steps)):
        axis.set_major_locator(FixedLocator(list(known)))
    elif high < NARROW * low:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    else:
        axis.set_major_locator(LogLocator(subs=next(ticks for ratio, ticks in TICKS.items() if high < ratio * low)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:,.12g}")  # 0.05, 2.5, 10,000


class Point(NamedTuple):
    """One value, with the ends of its interval and a label where it has them."""

    x: float
    y: float
    ends: tuple[float, ...] = ()
    label: str = ""


def draw_points(axes: Axes, points: Sequence[Point], look: Look) -> None:
    """Draw the points, joined in their order, with their intervals."""
    x, y = [point.x for point in points], [point.y for point in points]
    axes.plot(x, y, **look, markersize=marker_size(len(points)), zorder=3)
    bars = [(point.x, point.y, *point.ends) for point in points if point.ends]
    if bars:
        at, middle, low, high = np.array(bars, np.float64).T
        # Where launches failed, a value may lie outside its interval: an end is never beyond its point.
        reach = np.maximum(middle - low, 0), np.maximum(high - middle, 0)
        axes.errorbar(at, middle, yerr=reach, fmt="none", ecolor=look["color"], elinewidth=0.8, capsize=2)
