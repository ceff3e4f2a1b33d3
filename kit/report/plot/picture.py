"""A picture of some profiles: panels, and around them a title, the machines, a legend and small print.

matplotlib's constrained layout makes room for all of them. It would give a legend and small print at one edge the same
room; the panels therefore are in a subfigure, with the machines above and the legend below them.
"""

from __future__ import annotations

import io
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from kit.compare.notes import headline_of
from kit.printable import printable_line
from kit.profile.reason import Reason
from kit.profile.schema import Profile
from kit.report.plain import one_line
from kit.report.plot.kinds import KINDS
from kit.report.plot.style import GREY, SMALL_PT, TEXT_PT, TITLE_PT, Look, our_style
from kit.report.quantity import counted, moment, several
from kit.report.sentences import sentence

WIDTH_IN = 6.5  # the text of a letter or an A4 page
PAD_IN = 0.05
DPI = 200
# Characters that fit across the picture.
TITLE_CHARS, TEXT_CHARS, SMALL_CHARS = 78, 108, 132
LEGEND_CHARS, LABEL_CHARS = 60, 32
LEGEND_COLUMNS_MAX = 6
# What a file may be, and what would make its bytes differ from day to day.
UNDATED = {".svg": "Date", ".png": "Software", ".pdf": "CreationDate"}


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


def _write_around(picture: Picture, request: PlotRequest) -> None:
    """Write title, machines, legend and small print; the figure becomes higher by them."""
    figure, title, looks, notes, left_out = picture
    (body,), at_left = figure.subfigs, {"x": PAD_IN / WIDTH_IN, "ha": "left"}
    machines, origins = [], []
    for label, profile in request.profiles:
        head = headline_of(label, profile)
        machine = ", ".join((head.cpu, *([counted(head.cpus, "CPU")] if head.cpus else []), *head.accelerators))
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
