"""`roofline`: FLOP/s of every network against its FLOPs a byte, under the lines of what was measured to be possible.

FLOP/s        ______________  matrix product
            / × mlp
          /       × cnn
        / triad                   FLOPs a byte
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from msgspec.structs import replace

from kit.compare.ceilings import Ceiling, beside, best_product, ceilings_of, named
from kit.compare.naming import label_members
from kit.compare.runs import CellRun, reduce_run
from kit.errors import KitError
from kit.profile.cell import DEFAULT_VARIANT, Cell
from kit.report.plain import one_line
from kit.report.plot import picture
from kit.report.plot.picture import GREY, Look, Picture, PlotRequest
from kit.report.quantity import counted, rate
from kit.workloads.operations import is_operation

HEIGHT_IN = 2.6
TITLE_CHARS = 46
NAMES_MAX = 18
# Room around points and ridges, as a factor; above the roofs their labels need some, too; slopes are seen so far to the
# left and down.
ROOM, HEADROOM, SLOPE, DEPTH = 1.5, 1.6, 8.0, 10.0
ROOF_STYLES = ("-", "--", ":")
LABEL_AT = 1.4  # of a slope, from where it begins
LINES = (
    "Lines: the framework's best block in this run: the matrix product in each precision, the triad on small and on "
    "large arrays."
)
POINTS = (
    "Points: a network's FLOP/s, against its FLOPs per byte that a step must move. Above a slope, arrays stay in "
    "faster caches. Filled: training. Half filled: inference."
)


class Panel(NamedTuple):
    """A framework on a device of one profile."""

    title: str
    roofs: list[Ceiling]  # of each precision
    slopes: list[Ceiling]
    points: list[tuple[str, CellRun]]  # by the name of a network


def draw(request: PlotRequest) -> Picture:
    """Return a panel for each framework and device; KitError where no ceiling was measured."""
    shown, left_out = _panels(request)
    if not shown:
        which = ", ".join(label for label, _ in request.profiles)
        raise KitError(f"nothing to draw: no ceilings in {which}; measure with kit run --ceilings")
    points = [_at(run) for panel in shown for _, run in panel.points]
    ridges = [roof.rate / slope.rate for panel in shown for roof in panel.roofs for slope in panel.slopes]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    slowest = min(panel.roofs[0].rate for panel in shown)
    limits_x = min([min(ridges) / SLOPE, *xs]) / ROOM, max([*ridges, *xs]) * ROOM
    limits_y = min([slowest / DEPTH, *ys]) / ROOM, max(panel.roofs[-1].rate for panel in shown) * HEADROOM
    looks = picture.looks_of(name for panel in shown for name, _ in panel.points)
    looks = {name: look | {"linestyle": "none"} for name, look in looks.items()}
    figure, axes = picture.panels(len(shown), 2, HEIGHT_IN, "FLOPs per byte", "FLOP/s", sharey=True)
    for panel_axes, panel in zip(axes, shown, strict=True):
        panel_axes.set_title(picture.cut(panel.title, TITLE_CHARS))
        picture.set_log(panel_axes, "x", limits_x)
        picture.set_log(panel_axes, "y", limits_y)
        panel_axes.yaxis.set_major_formatter(lambda value, _: rate(value, ""))
    figure.draw_without_rendering()  # now a slope has its angle
    for panel_axes, panel in zip(axes, shown, strict=True):
        _draw(panel_axes, panel, looks)
    notes = [LINES, POINTS, *picture.hollow_notes(run.numbers for panel in shown for _, run in panel.points)]
    return Picture(figure, "Roofline: steps against the ceilings measured here", looks, notes, left_out)


def _panels(request: PlotRequest) -> tuple[list[Panel], list[str]]:
    """Return a panel for each framework with its ceilings, and a line for every network that is not drawn."""
    panels, left_out = [], []
    runs = [list(reduce_run(label, profile).cells.values()) for label, profile in request.profiles]
    names = _names([run.cell for of_profile in runs for run in of_profile if not is_operation(run.cell)])
    for (label, profile), of_profile in zip(request.profiles, runs, strict=True):
        ceilings, prefix = ceilings_of(profile), f"{label} · " if len(request.profiles) > 1 else ""
        places: dict[str, list[CellRun]] = {}
        for run in of_profile:
            places.setdefault(_place(run.cell, request), []).append(run)
        for title, of_place in places.items():
            panel = Panel(prefix + title, *_lines(of_place[0].cell, ceilings), [])
            for run in (run for run in of_place if not is_operation(run.cell)):
                what = one_line(f"{prefix}{run.cell.key}")
                if run.numbers.step_ns is None:
                    left_out.append(picture.no_number(what, run.failure))
                elif not panel.roofs or not panel.slopes:
                    left_out.append(f"{what}: no ceiling was measured")
                elif not (run.numbers.reach and run.numbers.reach.rate):
                    left_out.append(f"{what}: its FLOPs are unknown")
                else:
                    panel.points.append((names[run.cell.key], run))
            if panel.roofs and panel.slopes:
                panels.append(panel)
    return panels, left_out


def _lines(cell: Cell, ceilings: Sequence[Ceiling]) -> tuple[list[Ceiling], list[Ceiling]]:
    """Return the best product in each precision, and the triads, slowest first."""
    here = beside(cell, ceilings)
    bests = {of.cell.precision: best_product(of.cell, here) for of in named("matmul", here)}
    roofs = [best for best in bests.values() if best is not None]
    return sorted(roofs, key=lambda of: of.rate), sorted(named("triad", here), key=lambda of: of.rate)


def _place(cell: Cell, request: PlotRequest) -> str:
    threads = "" if cell.threads is None else f" · {counted(cell.threads, 'thread')}"
    variant = "" if cell.variant == DEFAULT_VARIANT else f" · {cell.variant}"
    return one_line(f"{request.titles.get(cell.backend, cell.backend)} on {cell.device}{threads}{variant}")


def _names(cells: Sequence[Cell]) -> dict[str, str]:
    """Return the name of each network's points; where they would be many, points of one network share it."""
    alike = {"backend": "", "compile_mode": "", "device": "", "task": "train", "threads": None, "variant": ""}
    bare = {cell.key: replace(cell, **alike) for cell in cells}
    names = label_members({cell.key: cell for cell in bare.values()}, ["workload"])
    of_cell = {key: one_line(names[cell.key]) for key, cell in bare.items()}
    if len({*of_cell.values()}) > NAMES_MAX:
        of_cell = {cell.key: one_line(cell.workload) for cell in cells}
    return of_cell


def _at(run: CellRun) -> tuple[float, float]:
    """Return where a point lies: FLOPs a byte, FLOP/s."""
    reach = run.numbers.reach
    assert reach is not None
    return (reach.flops or 0) / (reach.bytes or 1), reach.rate or 0


def _draw(axes: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    """Draw the lines with their labels, and the points above them."""
    (low, high), (bottom, _) = axes.get_xlim(), axes.get_ylim()
    for place, roof in enumerate(panel.roofs):
        begin = roof.rate / panel.slopes[-1].rate
        axes.plot([begin, high], [roof.rate] * 2, color=GREY, linestyle=ROOF_STYLES[place % len(ROOF_STYLES)])
        # Two may be close: the lowest is labelled below its line, the others above.
        above = place > 0 or len(panel.roofs) == 1
        _label(axes, f"{rate(roof.rate, 'FLOP/s')} {roof.cell.precision}", (high, roof.rate), above=above, ha="right")
    (x0, y0), (x1, y1) = axes.transData.transform([(low, bottom), (2 * low, 2 * bottom)])
    for place, slope in enumerate(panel.slopes):
        ends = [max(low, bottom / slope.rate), panel.roofs[-1].rate / slope.rate]
        axes.plot(ends, [slope.rate * end for end in ends], color=GREY)
        at = ends[0] * LABEL_AT, slope.rate * ends[0] * LABEL_AT
        words = f"{rate(slope.rate, 'B/s')} {slope.name}"
        _label(axes, words, at, above=place > 0, rotation=math.degrees(math.atan2(y1 - y0, x1 - x0)))
    for name, run in panel.points:
        half = {"fillstyle": "bottom"} if run.cell.task == "infer" else {}
        x, y = _at(run)
        hollow = run.numbers.contention_pct is not None
        picture.draw_markers(axes, [x], [y], [hollow], **looks[name] | half, markersize=4.5, zorder=3)


def _label(axes: Axes, words: str, at: tuple[float, float], *, above: bool, ha: str = "left", **more: Any) -> None:  # noqa: ANN401
    style: dict[str, Any] = {"textcoords": "offset points", "size": 6, "color": GREY, "ha": ha} | more
    label = axes.annotate(words, at, (0, 2 if above else -2), **style)
    label.set(va="bottom" if above else "top", rotation_mode="anchor", in_layout=False)
