"""How a picture of some profiles looks: panels, and around them a title, the machines, a legend and small print.

matplotlib's constrained layout makes room for all of them. It would give a legend and small print at one edge the same
room; the panels therefore are in a subfigure, with the machines above and the legend below them.
"""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from kit.compare.notes import headline_of
from kit.compare.rows import Numbers
from kit.printable import printable_line
from kit.profile.reason import Reason
from kit.profile.schema import Profile
from kit.report.plain import one_line
from kit.report.platforms import device_words
from kit.report.plot import KINDS
from kit.report.quantity import TIME_UNITS, counted, moment, several
from kit.report.sentences import sentence

Look = dict[str, Any]  # colour, marker and style of a line, as matplotlib calls them

WIDTH_IN = 6.5  # the text of a letter or an A4 page
PAD_IN = 0.05
DPI = 200
# Characters that fit across the picture.
TITLE_CHARS, TEXT_CHARS, SMALL_CHARS = 78, 108, 132
LEGEND_CHARS, LABEL_CHARS = 60, 32
LEGEND_COLUMNS_MAX = 6
# What a file may be, and what would make its bytes differ from day to day.
UNDATED = {".svg": "Date", ".png": "Software", ".pdf": "CreationDate"}
TITLE_PT, TEXT_PT, TICK_PT, SMALL_PT = 10, 8, 7, 6.5
# Okabe and Ito's colours, which suit any colour vision; without yellow, which is hardly visible on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
# Seven, eight and five have no common divisor: 280 lines differ in one of them.
LOOKS = cycler(color=COLOURS * 40) + cycler(marker=MARKERS * 35) + cycler(linestyle=LINES * 56)
HOLLOW: Look = {"linestyle": "none", "markerfacecolor": "white", "markeredgewidth": 0.7}
GREY, BAND = "#555555", "#F3F3F3"
CROWDED = 20  # a line of more points than this has small markers
# Below this ratio of the largest value to the smallest, ticks have equal distances: powers of ten would leave one or
# none. Above it, the ratio decides which multiples of a power of ten have a tick.
NARROW = 3.0
TICKS = {20.0: (1, 2, 3, 5), 2000.0: (1, 2, 5), math.inf: (1,)}
# Up to this count, the values are the ticks, unless two of them are closer than this share of the axis.
TICKED_VALUES_MAX, TICK_DISTANCE = 8, 0.08
OUTLIERS_MAX = 2.0  # by what outliers widen an axis at most, as a factor
MARGIN = 0.06  # around the values, as a share of the logarithmic axis


class PlotRequest(NamedTuple):
    """What a picture is drawn from."""

    kind: str
    profiles: Sequence[tuple[str, Profile]]  # each with its label
    titles: Mapping[str, str]  # of each backend, as people write it
    baseline: str | None = None


class Picture(NamedTuple):
    """A figure with its panels, and what is written around them."""

    figure: Figure
    title: str
    looks: Mapping[str, Look]  # of each line; the name of a single one is part of the title
    notes: Sequence[str]  # sentences for the small print
    left_out: Sequence[str]  # a line for everything that is not drawn


class Point(NamedTuple):
    """One value, with the ends of its interval and a label where it has them; hollow where others disturbed it."""

    x: float
    y: float
    ends: tuple[float, ...] = ()
    label: str = ""
    hollow: bool = False


def draw(request: PlotRequest) -> Picture:
    """Return the picture of the requested kind; KitError where there is nothing to draw, or no such baseline."""
    labels = short_names((label for label, _ in request.profiles), LABEL_CHARS)
    request = request._replace(
        profiles=[(labels[label], profile) for label, profile in request.profiles],
        baseline=labels.get(request.baseline or "", request.baseline),
    )
    with our_style():
        picture: Picture = import_module(f"kit.report.plot.{KINDS[request.kind]}").draw(request)
        _write_around(picture, request)
    return picture


def file_of(picture: Picture, ending: str) -> bytes:
    """Return the picture as a file with this ending, a key of UNDATED; the same profiles give the same bytes."""
    file = io.BytesIO()
    with our_style():
        picture.figure.savefig(file, format=ending.removeprefix("."), dpi=DPI, metadata={UNDATED[ending]: None})
    if ending == ".svg":  # matplotlib leaves spaces at ends of lines, which version control complains of
        return b"".join(line.rstrip() + b"\n" for line in file.getvalue().splitlines())
    return file.getvalue()


def _write_around(picture: Picture, request: PlotRequest) -> None:
    """Write title, machines, legend and small print; the figure becomes higher by them."""
    figure, title, looks, notes, left_out = picture
    (body,), at_left = figure.subfigs, {"x": PAD_IN / WIDTH_IN, "ha": "left"}
    machines, origins = [], []
    for label, profile in request.profiles:
        head = headline_of(label, profile)
        machine = " · ".join(device_words(head))
        named = f"{label}: " if len(request.profiles) > 1 else ""
        machines.append(one_line(f"{named}{head.suite} on {machine}", TEXT_CHARS))
        rounds, created = counted(head.rounds, "round"), moment(head.created)
        origins.append(one_line(f"profile {profile.id} · {created} · {rounds} · kit {head.kit}", SMALL_CHARS))
    missing = [f"Not drawn: {several(left_out, '; ')}"] if left_out else []
    small = [textwrap.fill(printable_line(text), SMALL_CHARS) for text in (*notes, *missing)]
    title = one_line(", ".join((title, *looks)) if len(looks) == 1 else title, TITLE_CHARS)
    around = [
        figure.suptitle(title, size=TITLE_PT, weight="bold", **at_left),
        body.suptitle(several(machines, "\n"), size=TEXT_PT, **at_left),
        figure.supxlabel("\n".join([*small, several(origins, "\n")]), size=SMALL_PT, color=GREY, **at_left),
        *([_legend(body, looks)] if len(looks) > 1 else []),
    ]
    added_in = sum(artist.get_window_extent().height / figure.dpi + 2 * PAD_IN for artist in around)
    figure.set_figheight(figure.get_figheight() + added_in)


def _legend(body: SubFigure, looks: Mapping[str, Look]) -> Legend:
    """Return a legend below the panels, in as many columns as fit."""
    handles, names = [Line2D([], [], **look) for look in looks.values()], short_names(looks, LEGEND_CHARS).values()
    for columns in range(min(len(looks), LEGEND_COLUMNS_MAX), 0, -1):
        legend = body.legend(handles, names, loc="outside lower center", ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= (WIDTH_IN - 2 * PAD_IN) * body.dpi:
            break
        legend.remove()
    return legend


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


def panels(
    count: int, columns: int, height_in: float, xlabel: str, ylabel: str = "", *, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels in reading order, each `height_in` high, and labels at the outer ones."""
    columns = min(count, columns)
    rows = -(-count // columns)
    figure = Figure(figsize=(WIDTH_IN, rows * height_in))
    figure.set_layout_engine("constrained", h_pad=PAD_IN, w_pad=PAD_IN)
    grid = figure.add_subfigure(figure.add_gridspec()[0]).subplots(rows, columns, squeeze=False, sharey=sharey).ravel()
    for empty in grid[count:]:
        empty.remove()
    for axes in grid[:count][-columns:]:
        axes.set_xlabel(xlabel)
    for axes in grid[:count:columns]:
        axes.set_ylabel(ylabel)
    return figure, list(grid[:count])


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """Return the look of each name, in their order."""
    return dict(zip(dict.fromkeys(names), LOOKS(), strict=False))


def marker_size(points: int) -> float:
    """Return the size of a marker, in points, on a line of so many points."""
    return 2.5 if points > CROWDED else 4.0


def time_unit(times_ns: Collection[float]) -> tuple[float, str]:
    """Return the largest unit that a logarithmic axis of these times reaches: its nanoseconds and its name."""
    _, high = _limits(times_ns, ())
    return next((unit for unit in TIME_UNITS if high >= unit[0]), TIME_UNITS[-1])


def set_log(
    axes: Axes,
    name: Literal["x", "y"],
    values: Collection[float],
    outliers: Collection[float] = (),
    *,
    ticked: bool = False,
) -> None:
    """Make an axis logarithmic, wide enough for all values and near outliers, with ticks at the values if `ticked`."""
    low, high = _limits(values, outliers)
    # The limits come first: a new scale would look for its own.
    axes.set(**{f"{name}lim": (low, high), f"{name}scale": "log"})
    axis, known = axes.xaxis if name == "x" else axes.yaxis, np.unique(list(values))
    steps = np.diff(np.log(known))
    if ticked and len(known) <= TICKED_VALUES_MAX and all(steps >= TICK_DISTANCE * sum(steps)):
        axis.set_major_locator(FixedLocator(list(known)))
    elif high < NARROW * low:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    else:
        axis.set_major_locator(LogLocator(subs=next(ticks for ratio, ticks in TICKS.items() if high < ratio * low)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:,.12g}")  # 0.05, 2.5, 10,000


def _limits(values: Collection[float], outliers: Collection[float]) -> tuple[float, float]:
    """Return the limits of a logarithmic axis, with room around the values."""
    low = max(min(values) / OUTLIERS_MAX, min([*values, *outliers]))
    high = min(max(values) * OUTLIERS_MAX, max([*values, *outliers]))
    room = max(high**MARGIN / low**MARGIN, 1.01)
    return low / room, high * room


def draw_markers(axes: Axes, x: ArrayLike, y: ArrayLike, hollow: Sequence[bool], **style: Any) -> None:  # noqa: ANN401
    """Draw values, joined in their order as `style` says; those that others disturbed have hollow markers."""
    if not any(hollow):
        axes.plot(x, y, **style)
        return
    axes.plot(x, y, **style, markevery=[not is_hollow for is_hollow in hollow])
    axes.plot(np.compress(hollow, x), np.compress(hollow, y), **style | HOLLOW)


def moved_to_ends(axes: Axes) -> bool:
    """Move hollow markers beyond the limits of the vertical axis to its ends; return whether there were any."""
    is_moved = False
    for line in (line for line in axes.lines if line.get_markerfacecolor() == HOLLOW["markerfacecolor"]):
        values = np.asarray(line.get_ydata(), np.float64)
        on_page = np.clip(values, *axes.get_ylim())
        if np.any(on_page != values):
            line.set(ydata=on_page, clip_on=False)
            is_moved = True
    return is_moved


def hollow_notes(numbers: Iterable[Numbers], of: str = "; the numbers are of the least disturbed round") -> list[str]:
    """Return what hollow markers mean where any of these cells is disturbed; `of`: how it was measured all the same."""
    taken_pct = [each.contention_pct for each in numbers if each.contention_pct is not None]
    return [f"Hollow: other programs took up to {max(taken_pct):.0f} % of the CPUs{of}."] if taken_pct else []


def draw_points(axes: Axes, points: Sequence[Point], look: Look) -> None:
    """Draw the points, joined in their order, with their intervals."""
    x, y, hollow = [point.x for point in points], [point.y for point in points], [point.hollow for point in points]
    draw_markers(axes, x, y, hollow, **look, markersize=marker_size(len(points)), zorder=3)
    bars = [(point.x, point.y, *point.ends) for point in points if point.ends]
    if bars:
        at, middle, low, high = np.array(bars, np.float64).T
        # Where launches failed, a value may lie outside its interval: an end is never beyond its point.
        reach = np.maximum(middle - low, 0), np.maximum(high - middle, 0)
        axes.errorbar(at, middle, yerr=reach, fmt="none", ecolor=look["color"], elinewidth=0.8, capsize=2)


def short_names(names: Iterable[str], chars: int) -> dict[str, str]:
    """Return each name `cut`; those that are then alike are numbered."""
    short, counts = {name: cut(name, chars) for name in names}, Counter[str]()
    for name, shown in short.items():
        counts[shown] += 1
        short[name] = f"{shown} #{counts[shown]}" if counts[shown] > 1 else shown
    return short


def cut(text: str, chars: int) -> str:
    """Return `text` on one line; a text that does not fit loses its middle."""
    whole, half = printable_line(text), chars // 2
    return whole if len(whole) <= chars else f"{whole[:half]}…{whole[-half:]}"


def no_number(what: str, failure: Reason | None) -> str:
    """Return the line of a cell that has no number."""
    return one_line(f"{what}: {'has no number' if failure is None else sentence(failure)}")
