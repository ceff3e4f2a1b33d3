"""One drawing function for all plots: panels of lines, points or bars, with the machines above and a legend below."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from kit.compare.notes import read_run
from kit.errors import KitError
from kit.printable import printable_line
from kit.report.headline_and_notes import device_words
from kit.report.plot_kinds import KINDS, Guide, PlotRequest, PlotRow, plot_data
from kit.report.values_in_words import UNITS, counted, moment, one_line, rate, several

Look = dict[str, Any]  # color, marker and style of a line, as matplotlib calls them
Looks = Mapping[tuple[str, ...], Look]

WIDTH_IN, PAD_IN = 6.5, 0.05  # as wide as the text of a letter or an A4 page
PANEL_IN, PANEL_LEAST_IN = {False: 2.0, True: 2.7}, 0.9  # height of a panel, by whether panels share their y axis
TITLE_CHARS, TEXT_CHARS, SMALL_CHARS, NAMES_CHARS = 12, 16.5, 20, 15  # that fit into an inch of width
LEGEND_CHARS, NAME_CHARS = 60, 24  # of a name
COLUMN_LINES_MAX = 6  # a panel of points with more lines than these takes the whole width
NAMES_MAX = 20  # below an axis; a line of more points than these has small markers
# What a file may be, and what would make its bytes differ from day to day.
UNDATED = {".svg": "Date", ".png": "Software", ".pdf": "CreationDate"}
# Okabe and Ito's colors, which suit any color vision; without yellow, which is hardly visible on white. A framework
# has the same color in every plot.
FRAMEWORKS = {"TensorFlow": "#0072B2", "PyTorch": "#D55E00", "JAX": "#009E73"}
COLORS = ("#000000", "#CC79A7", "#E69F00", "#56B4E9", *FRAMEWORKS.values())
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
GREY, BAND = "#555555", "#F3F3F3"
FAINT: Look = {"marker": "o", "s": 1.5**2, "linewidths": 0.3, "alpha": 0.5, "zorder": 2}
STYLE: Any = {
    "font.size": 8, "axes.titlesize": 8, "axes.titlelocation": "left", "axes.labelsize": 8, "axes.grid": True,
    "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False, "xtick.labelsize": 7,
    "ytick.labelsize": 7, "legend.fontsize": 7, "legend.frameon": False, "legend.handlelength": 2.8,
    "grid.color": "#DDDDDD", "grid.linewidth": 0.5, "lines.linewidth": 1.2, "lines.markersize": 4,
    "hatch.linewidth": 0.6, "figure.constrained_layout.h_pad": PAD_IN, "figure.constrained_layout.w_pad": PAD_IN,
    "text.parse_math": False,  # names come from other people: a `$` in a name is a `$`
    # Text stays text, which can be searched and copied; ids are derived from the salt, so that bytes repeat.
    "svg.fonttype": "none", "svg.hashsalt": "kit",
}  # fmt: skip
LABELS = {
    "batch": "batch (samples per step)", "setting": "batch (samples per step)", "units": "units (per layer)",
    "devices": "devices (sharing each batch)", "sample_ns": "time per sample", "reach_rate": "FLOP/s",
    "samples_per_s": "throughput (samples/s)", "intensity": "FLOPs per byte",
}  # fmt: skip
COUNTED = ("layers", "depth", "heads", "devices")  # other axes are doubled
# Below this ratio of the largest value to the smallest, ticks have equal distances: powers of ten would leave one or
# none. Above it, the ratio decides which multiples of a power of ten have a tick.
NARROW = 3.0
TICKS = {20.0: (1, 2, 3, 5), 2000.0: (1, 2, 5), math.inf: (1,)}
# Up to this count, the values are the ticks, unless two of them are closer than this fraction of the axis.
TICKED_VALUES_MAX, TICK_DISTANCE = 8, 0.08
DISTURBED_MOST = 2.0  # disturbed values widen an axis by this factor at most
MARGIN = 0.06  # around the values, as a fraction of the axis


def draw(request: PlotRequest) -> tuple[Figure, list[str]]:
    """Return the plot, and a line for everything that is not drawn; KitError where there is nothing to draw."""
    kind, (rows, guides, notes, left_out) = KINDS[request.kind], plot_data(request)
    y_name, is_log = request.metric or kind.y, (request.axis or kind.axis) == "log"
    mark = "point" if is_log and kind.mark == "bar" else kind.mark  # on a log axis the length of a bar says nothing
    names = dict.fromkeys(row["panel"] for row in rows)
    panels = {name: [row for row in rows if row["panel"] == name] for name in names}
    looks = _looks(list(dict.fromkeys(row["line"] for row in rows)), mark)
    widest = max(len({row["line"] for row in members}) for members in panels.values())
    is_wide = kind.x == "question" or (mark != "line" and widest > COLUMN_LINES_MAX)
    columns = 1 if is_wide else min(2, len(panels))
    height = -(-len(panels) // columns)
    width_in, height_in = request.size_in or (WIDTH_IN, height * PANEL_IN[kind.shares_y])
    with _our_style():
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        # matplotlib gives a legend and small print at one edge the same room: the panels have a figure of their own.
        body = figure.add_subfigure(figure.add_gridspec()[0])
        grid = body.subplots(height, columns, squeeze=False, sharey=kind.shares_y).ravel()
        for empty in grid[len(panels) :]:
            empty.remove()
        for index, (axes, (panel, members)) in enumerate(zip(grid, panels.items(), strict=False)):
            shown = rows if kind.shares_y else members
            scale, y_label = _unit(y_name, members[0], rows)
            x = [row["x"] for row in shown] + [end for guide in guides for end in guide.x]
            is_named = isinstance(x[0], str)
            axes.set_title(one_line(panel, int(TITLE_CHARS * width_in * 1.3 / columns)))
            x_label = LABELS.get(kind.x, kind.x) if not is_named or kind.x == "round" else ""
            axes.set_xlabel(x_label if index >= len(panels) - columns else "")
            axes.set_ylabel("" if kind.shares_y and index % columns else y_label)
            begin = None if is_log or y_name == "ratio" else 0.0
            clean = [row for row in shown if not row["disturbed"] or kind.mark == "bar"] or shown
            ends = [row["y"] for row in clean] + [row[end] for row in shown for end in ("low", "high") if row[end]]
            heights = [end / scale for end in ends] + [end for guide in guides for end in guide.y]
            if kind.alike is not None:
                heights.append(kind.alike)
                axes.axhline(kind.alike, color=GREY, linewidth=1, linestyle="--", zorder=1)
            _set_axis(axes, "y", heights, [row["y"] / scale for row in shown], is_log=is_log, begin=begin)
            if not is_named:
                _set_axis(axes, "x", x, is_log=kind.x not in COUNTED, ticked=not guides)
            if guides:
                axes.yaxis.set_major_formatter(lambda value, _: rate(value, ""))
            _draw_rows(axes, members, looks, mark, scale)
            (bottom, top), beyond = axes.get_ylim(), "Hollow marks at an end of an axis lie beyond it."
            if beyond not in notes and any(not bottom <= row["y"] / scale <= top for row in members):
                notes.append(beyond)
        notes += [f"Not drawn: {several(left_out, '; ')}"] if left_out else []
        around_in = _write_around(figure, request, rows, {} if kind.x == "member" else looks, notes)
        least_in = math.ceil(10 * (around_in + height * PANEL_LEAST_IN)) / 10
        if request.size_in is None:
            figure.set_figheight(height_in + around_in)
        elif height_in < least_in:
            raise KitError(f"--size {width_in:g}x{height_in:g}: too low for this plot; use {width_in:g}x{least_in:g}")
        figure.draw_without_rendering()  # now every panel has its place, and a slope its angle
        for axes, panel in zip(grid, panels, strict=False):
            _draw_guides(axes, [guide for guide in guides if guide.panel == panel])
    return figure, left_out


def file_of(figure: Figure, ending: str, dpi: int) -> bytes:
    """Return the plot as a file with this ending, a key of UNDATED; the same profiles give the same bytes."""
    file = io.BytesIO()
    with _our_style():
        figure.savefig(file, format=ending.removeprefix("."), dpi=dpi, metadata={UNDATED[ending]: None})
    # matplotlib leaves spaces at the ends of lines of an SVG, which version control complains of.
    lines = file.getvalue().splitlines() if ending == ".svg" else []
    return b"".join(line.rstrip() + b"\n" for line in lines) or file.getvalue()


@contextmanager
def _our_style() -> Iterator[None]:
    """Draw and save in matplotlib's defaults with our changes, whatever the user's own matplotlibrc says."""
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        # A name may be in a script that the font lacks: an empty box in the plot shows it.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def _looks(lines: Sequence[tuple[str, ...]], mark: str) -> dict[tuple[str, ...], Look]:
    """Return the look of each line. Those of one framework share its color; of one framework alone they differ."""
    firsts = {line[0] for line in lines}
    keys = [line if len(firsts) == 1 else line[:1] for line in lines]
    free = iter([color for color in COLORS if color not in {FRAMEWORKS.get(first) for first in firsts}] * len(lines))
    colors = {key: FRAMEWORKS.get(" ".join(key)) or next(free) for key in dict.fromkeys(keys)}
    styles = STYLES if mark == "line" else ("none",)
    return {
        line: {"color": colors[key], "marker": marker, "linestyle": style}
        for line, key, marker, style in zip(lines, keys, cycle(MARKERS), cycle(styles), strict=False)
    }


def _unit(y_name: str, first: PlotRow, rows: Sequence[PlotRow]) -> tuple[float, str]:
    """Return what values in the panel of a row are divided by, and its label: all panels with steps have one unit."""
    stem, _, ending = y_name.rpartition("_")
    baseline, title = one_line(first["baseline"] or "", NAME_CHARS), first["time_title"]
    words = {"ratio": f"{title} ÷ {baseline}", "gain_pct": f"gain over {baseline} (%)", "time_ns": title} | LABELS
    if (units := UNITS.get(f"_{ending}")) is None:
        return 1.0, words.get(y_name, y_name.replace("_", " "))
    alike = [row for row in rows if row["time_title"] == title]
    values = [end for row in alike for end in (row["y"], row["low"], row["high"]) if end is not None]
    high = max(values) * max((max(values) / min(values)) ** MARGIN, 1 + MARGIN)  # no tick is 1,000 of a unit
    scale, unit = next((unit for unit in units if high >= unit[0]), units[-1])
    return scale, f"{words.get(y_name, stem.replace('_', ' '))} ({unit})"


def _draw_rows(axes: Axes, rows: Sequence[PlotRow], looks: Looks, mark: str, scale: float) -> None:
    """Draw rows with their intervals. Names on the x axis have positions, and lines that share one are side by side."""
    lines = [line for line in looks if any(row["line"] == line for row in rows)]
    names = list(dict.fromkeys(row["x"] for row in rows if isinstance(row["x"], str)))
    positions = {name: float(index) for index, name in enumerate(names)}
    if "all" in positions:  # the result of many rounds is not narrower than a twelfth of them
        positions["all"] += max(0.0, len(names) / 12 - 1)
    are_side_by_side = len({(row["x"], row["line"]) for row in rows}) > len(positions)
    slot, limits = 0.8 / len(lines) if are_side_by_side else 0.8, axes.get_ylim()
    for index, line in enumerate(lines):
        members, look = [row for row in rows if row["line"] == line], looks[line]
        color, shift = look["color"], (index - (len(lines) - 1) / 2) * slot if are_side_by_side else 0.0
        x = [positions[row["x"]] + shift + 0.8 * slot * row.get("faint", 0.0) if names else row["x"] for row in members]
        y, low, high = (np.array([row[end] for row in members], float) / scale for end in ("y", "low", "high"))
        y = np.clip(y, *limits)  # a disturbed value beyond the axis is drawn at its end
        fills = ["white" if row["disturbed"] else color for row in members]
        if mark == "bar":
            hatches = ["////" if row["disturbed"] else "" for row in members]
            axes.bar(x, y, width=0.7 * slot, color=fills, edgecolor=color, hatch=hatches)
        elif mark == "line" and not names:
            axes.plot(x, y, color=color, linestyle=look["linestyle"])
        for is_faint in (True, False) if mark != "bar" else ():
            chosen = [("faint" in row) == is_faint for row in members]
            size_pt = 2.5 if sum(chosen) > NAMES_MAX else 4.0
            style = FAINT if is_faint else {"marker": look["marker"], "s": size_pt**2, "linewidths": 0.8, "zorder": 3}
            style = style | {"facecolors": list(np.compress(chosen, fills)), "edgecolors": color, "clip_on": False}
            axes.scatter(np.compress(chosen, x), y[chosen], **style)
        # Where launches failed, a value may lie outside its interval: an end is never beyond its point.
        known, ends = ~np.isnan(low), np.maximum((y - low, high - y), 0.0)
        bars: Look = {"ecolor": GREY if mark == "bar" else color, "elinewidth": 0.8, "capsize": 2, "zorder": 4}
        if known.any():
            axes.errorbar(np.compress(known, x), y[known], yerr=ends[:, known], fmt="none", **bars)
    if names:
        _set_names(axes, positions, has_bands=are_side_by_side)


def _set_names(axes: Axes, positions: Mapping[str, float], *, has_bands: bool) -> None:
    """Write names below the x axis: every n-th where they are many, turned where they are long."""
    shown = [name for name in positions if name != "all"][:: -(-len(positions) // NAMES_MAX)]
    shown += ["all"] if "all" in positions else []
    parts = [[one_line(part, NAME_CHARS) for part in name.split("\n")] for name in shown]
    grid, root = axes.get_subplotspec(), axes.get_figure(root=True)
    room_in = root.get_figwidth() / (grid.get_gridspec().ncols if grid else 1) / len(shown) if root else 1.0
    is_tight = max(len(part) for name in parts for part in name) > NAMES_CHARS * room_in
    turned: Look = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if is_tight else {}
    axes.set_xticks([positions[name] for name in shown], ["\n".join(name) for name in parts], **turned)
    axes.set_xlim(-0.5, max(positions.values()) + 0.5)
    axes.grid(visible=False, axis="x")
    for x in list(positions.values())[1::2] if has_bands and len(positions) <= NAMES_MAX else []:
        axes.axvspan(x - 0.5, x + 0.5, color=BAND, lw=0, zorder=0)


def _set_axis(
    axes: Axes, name: str, values: Sequence[float], disturbed: Sequence[float] = (), *,
    is_log: bool, begin: float | None = None, ticked: bool = False,
) -> None:  # fmt: skip
    """Make the axis "x" or "y" wide enough for all values and near disturbed ones, with ticks that people read.

    A linear axis starts at `begin`; None: near its values. If `ticked`, the values are the ticks where they are few.
    """
    low = max(min(values) / DISTURBED_MOST, min([*values, *disturbed]))
    high = min(max(values) * DISTURBED_MOST, max([*values, *disturbed]))
    axis, known = axes.xaxis if name == "x" else axes.yaxis, np.unique(list(values))
    if is_log:
        room = max((high / low) ** MARGIN, 1.01)
        # The limits come first: a new scale would look for its own.
        axes.set(**{f"{name}lim": (low / room, high * room), f"{name}scale": "log"})
    else:
        room = MARGIN * (high - (low if begin is None else begin)) or 0.1
        axes.set(**{f"{name}lim": (low - room if begin is None else begin, high + room)})
    steps = np.diff(np.log(known))
    if ticked and len(known) <= TICKED_VALUES_MAX and all(steps >= TICK_DISTANCE * sum(steps)):
        axis.set_major_locator(FixedLocator(list(known)))
    elif not is_log or high < NARROW * low:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], integer=ticked))
    else:
        axis.set_major_locator(LogLocator(subs=next(ticks for ratio, ticks in TICKS.items() if high < ratio * low)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:,.12g}")  # 0.05, 2.5, 10,000


def _draw_guides(axes: Axes, guides: Sequence[Guide]) -> None:
    """Draw grey lines with their words: those of level lines end at the right, those of slopes start at the left."""
    bottom = axes.get_ylim()[0]
    for is_level in (True, False):
        alike = [guide for guide in guides if (guide.y[0] == guide.y[1]) == is_level]
        for index, (_, x, y, words) in enumerate(alike):
            axes.plot(x, y, color=GREY, linestyle=STYLES[index % len(STYLES)] if is_level else "-", zorder=1)
            (x0, y0), (x1, y1) = axes.transData.transform(list(zip(x, y, strict=True)))
            begin = 1.4 * max(1.0, bottom / y[0])
            at = (x[1], y[1]) if is_level else (x[0] * begin, y[0] * begin)
            # Two lines may be close: the words of the lowest are below it, those of the others above.
            above = index > 0 or len(alike) == 1
            style: Look = {"ha": "right" if is_level else "left", "va": "bottom" if above else "top"}
            style |= {"rotation": math.degrees(math.atan2(y1 - y0, x1 - x0)), "rotation_mode": "anchor"}
            label = axes.annotate(words, at, (0, 2 if above else -2), textcoords="offset points", size=6, **style)
            label.set(color=GREY, in_layout=False)


def _write_around(
    figure: Figure, request: PlotRequest, rows: Sequence[PlotRow], looks: Looks, notes: Sequence[str]
) -> float:
    """Write title, machines, legend and small print; return the height that they take, in inches."""
    (body,), width_in = figure.subfigs, figure.get_figwidth()
    machines, origins, at_left = list[str](), list[str](), {"x": PAD_IN / width_in, "ha": "left"}
    for label, profile in request.profiles:
        head, every = (read_run(label, profile, all_cycles=is_all).headline for is_all in (False, True))
        # As tables count them: those that other programs disturbed do not count.
        count = counted(head.rounds, "round")
        count = count if every.rounds == head.rounds else f"{head.rounds} of {counted(every.rounds, 'round')}"
        named = f"{label}: " if len(request.profiles) > 1 else ""
        machines.append(f"{named}{head.suite} on {' · '.join(device_words(head))}")
        origins.append(f"{label} · {moment(head.created)} · {count} · kit {head.kit}")
    shown = several(list(dict.fromkeys(row["workload"] for row in rows)))
    alone = [name for name in (" ".join(line) for line in looks) if name != shown] if len(looks) == 1 else []
    what = f"{request.metric} by {request.kind}" if request.metric else KINDS[request.kind].title
    title = request.title or ", ".join([f"{what}: {shown}", *alone])

    def wrapped(lines: Sequence[str], chars: float) -> str:
        return "\n".join(textwrap.fill(printable_line(line), int(chars * width_in)) for line in lines)

    small = wrapped([*notes, *several(origins, "\n").split("\n")], SMALL_CHARS)
    around: list[Text | Legend] = [
        figure.suptitle(wrapped([title], TITLE_CHARS), size=10, weight="bold", **at_left),
        body.suptitle(wrapped(several(machines, "\n").split("\n"), TEXT_CHARS), size=8, **at_left),
        figure.supxlabel(small, size=6.5, color=GREY, **at_left),
    ]
    if len(looks) > 1:
        names = list[str]()
        for whole in (printable_line(" ".join(line)) for line in looks):
            half = LEGEND_CHARS // 2
            name = whole if len(whole) <= LEGEND_CHARS else f"{whole[:half]}…{whole[-half:]}"
            names.append(f"{name} #{len(names) + 1}" if name in names else name)
        columns = max(1, min(len(names), int(SMALL_CHARS * width_in / (max(map(len, names)) + 9))))
        handles = [Line2D([], [], **look) for look in looks.values()]
        around.append(body.legend(handles, names, loc="outside lower center", ncols=columns))
    return sum(artist.get_window_extent().height / figure.dpi + 2 * PAD_IN for artist in around)
