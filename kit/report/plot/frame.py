"""The frame around the panels of a picture: title, where it was measured, legend, small print; and saving it.

┌ title ───────────────────────────────┐
│ where                                │
│ ┌ panel ──────────┐ ┌ panel ───────┐ │   everything but the panels has its height in inches,
│ └─────────────────┘ └──────────────┘ │   the panels get what they ask for: nothing overlaps
│ legend                               │
│ small print                          │
└──────────────────────────────────────┘
"""

from __future__ import annotations

import io
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from kit.compare.notes import headline_of
from kit.compare.rows import Headline
from kit.errors import KitError
from kit.printable import printable_line
from kit.profile.reason import Reason
from kit.profile.schema import Profile
from kit.report.plain import one_line
from kit.report.plot.style import GREY, SMALL_PT, TEXT_PT, TITLE_PT, Look
from kit.report.quantity import counted, moment
from kit.report.reasons import sentence

WIDTH_IN = 6.5  # the text of a letter or an A4 page
EDGE_IN = 0.1
DPI = 200
POINT_IN = 1 / 72
LINE_SPACING = 1.35
# Characters that fit across the picture.
TITLE_CHARS, TEXT_CHARS, SMALL_CHARS = 78, 108, 132
LEGEND_CHARS = 60
LABEL_CHARS = 32
LEGEND_COLUMNS_MAX = 6
PROFILES_NAMED = 3
LEFT_OUT_NAMED = 3

# What a file may be, and what would make its bytes differ from day to day.
UNDATED: Mapping[str, dict[str, None]] = {
    ".svg": {"Date": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None},
}

Labelled = Sequence[tuple[str, Profile]]  # each with its label


class PlotError(KitError):
    """A picture that has nothing to show."""


class PlotRequest(NamedTuple):
    """What a kind is drawn from."""

    kind: str
    profiles: Labelled
    titles: Mapping[str, str]  # backend -> as people write it
    baseline: str | None = None


class Line(NamedTuple):
    """A line of text above or below the panels."""

    text: str
    size_pt: float
    chars: int  # that fit
    weight: str = "normal"
    color: str = "black"

    @property
    def height_in(self) -> float:
        """What it takes of the picture."""
        return self.size_pt * LINE_SPACING * POINT_IN


class Picture(NamedTuple):
    """A figure, and what is not in it: a line each."""

    figure: Figure
    left_out: list[str]


def panels(count: int, columns: int, height_in: float, **more: Any) -> tuple[Figure, list[Axes]]:  # noqa: ANN401 - matplotlib's own
    """Return a figure with so many panels, each as high, and the panels in the order of reading."""
    columns = min(count, columns)
    rows = -(-count // columns)
    figure = Figure(figsize=(WIDTH_IN, rows * height_in))
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False, **more).ravel()
    for empty in grid[count:]:
        empty.remove()
    return figure, list(grid[:count])


def framed(
    figure: Figure,
    request: PlotRequest,
    *,
    title: str,
    looks: Mapping[str, Look],
    small: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> Picture:
    """Put the frame around the panels that are drawn.

    Args:
        figure: with panels.
        request: whose machines and kit are named.
        title: what is shown.
        looks: of each line; with more than one there is a legend, a single one is named in the title.
        small: sentences in small print.
        left_out: what is not shown, a line each.
    """
    heads = [headline_of(label, profile) for label, profile in request.profiles]
    head = [
        Line(", ".join((title, *looks)) if len(looks) == 1 else title, TITLE_PT, TITLE_CHARS, weight="bold"),
        *(Line(_where(one, named=len(heads) > 1), TEXT_PT, TEXT_CHARS) for one in heads[:PROFILES_NAMED]),
    ]
    origins = [_origin(one, profile.id) for one, (_, profile) in zip(heads, request.profiles, strict=True)]
    missing = [f"Not drawn: {'; '.join(_few(left_out, LEFT_OUT_NAMED))}"] if left_out else []
    sentences = [*small, *missing, *_few(origins, PROFILES_NAMED)]
    foot = [
        Line(part, SMALL_PT, SMALL_CHARS, color=GREY) for one in sentences for part in textwrap.wrap(one, SMALL_CHARS)
    ]
    legend = _legend(figure, looks) if len(looks) > 1 else None
    legend_in = 0.0 if legend is None else legend.get_window_extent().height / figure.dpi + EDGE_IN / 2
    panels_in, foot_in = figure.get_figheight(), EDGE_IN + sum(one.height_in for one in foot)
    height_in = panels_in + legend_in + foot_in + sum(one.height_in for one in head) + 1.5 * EDGE_IN
    figure.set_size_inches(WIDTH_IN, height_in)
    _write(figure, head, height_in - EDGE_IN)
    _write(figure, foot, foot_in)
    if legend is not None:
        legend.set_bbox_to_anchor((0.5, (foot_in + legend_in) / height_in), figure.transFigure)
    inside = (0.005, (foot_in + legend_in) / height_in, 0.99, panels_in / height_in)
    figure.set_layout_engine("constrained", rect=inside, h_pad=EDGE_IN / 2, w_pad=EDGE_IN / 2)
    figure.draw_without_rendering()  # what is placed by what others take needs to know it
    return Picture(figure, list(left_out))


def short_names(names: Iterable[str], chars: int) -> dict[str, str]:
    """Return each name `cut`; those that are then alike are numbered."""
    found: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for name in dict.fromkeys(names):
        short = cut(name, chars)
        counts[short] += 1
        found[name] = f"{short} #{counts[short]}" if counts[short] > 1 else short
    return found


def cut(text: str, chars: int) -> str:
    """Return `text` in one line as it fits, cut in its middle."""
    whole, half = printable_line(text), chars // 2
    return whole if len(whole) <= chars else f"{whole[:half]}…{whole[-half:]}"


def no_number(what: str, failure: Reason | None) -> str:
    """Return the line of a cell that has no number."""
    return one_line(f"{what}: {'has no number' if failure is None else sentence(failure)}")


def saved(figure: Figure, ending: str) -> bytes:
    """Return the picture as a file with this ending, one of UNDATED; of the same profile the same bytes."""
    file = io.BytesIO()
    figure.savefig(file, format=ending.removeprefix("."), dpi=DPI, metadata=UNDATED[ending])
    if ending == ".svg":  # matplotlib ends lines in spaces, which version control complains of
        return b"".join(line.rstrip() + b"\n" for line in file.getvalue().splitlines())
    return file.getvalue()


def _legend(figure: Figure, looks: Mapping[str, Look]) -> Legend:
    """Return a legend in as many columns as the picture is wide."""
    handles = [Line2D([], [], color=own.colour, marker=own.marker, linestyle=own.line) for own in looks.values()]
    names = list(short_names(looks, LEGEND_CHARS).values())
    for columns in range(min(len(looks), LEGEND_COLUMNS_MAX), 0, -1):
        legend = figure.legend(handles, names, loc="upper center", ncols=columns, borderaxespad=0)
        if columns == 1 or legend.get_window_extent().width <= (WIDTH_IN - 2 * EDGE_IN) * figure.dpi:
            break
        legend.remove()
    return legend


def _write(figure: Figure, lines: Sequence[Line], top_in: float) -> None:
    """Write the lines below one another; `top_in` is from the picture's lower edge."""
    for one in lines:
        x, y = EDGE_IN / WIDTH_IN, top_in / figure.get_figheight()
        figure.text(x, y, one_line(one.text, one.chars), size=one.size_pt, weight=one.weight, color=one.color, va="top")
        top_in -= one.height_in


def _where(head: Headline, *, named: bool) -> str:
    cpus = [counted(head.cpus, "CPU")] if head.cpus else []
    machine = ", ".join((head.cpu, *cpus, *head.accelerators))
    return f"{head.label}: {head.suite} on {machine}" if named else f"{head.suite} on {machine}"


def _origin(head: Headline, profile_id: str) -> str:
    return one_line(
        f"profile {profile_id} · {moment(head.created)} · {counted(head.rounds, 'round')} · kit {head.kit}", SMALL_CHARS
    )


def _few(lines: Sequence[str], most: int) -> Sequence[str]:
    return lines if len(lines) <= most else [*lines[:most], f"and {len(lines) - most:,} more"]
