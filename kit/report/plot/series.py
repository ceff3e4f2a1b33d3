"""Lines of cells that differ in one axis only, as of a sweep, and how a line is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from matplotlib.axes import Axes

from kit.compare.naming import axes_of, label_members
from kit.compare.runs import CellRun, reduce_run
from kit.profile.cell import AXES, Cell
from kit.report.plain import one_line
from kit.report.plot.frame import PlotError, PlotRequest, no_number
from kit.report.plot.style import Look, marker_size

TASKS = {"train": "training", "infer": "inference"}
NAMED_MAX = 3  # networks in a title
# Of a panel: nobody can follow more, whatever they look like.
LINES_MAX = 8
INTERVALS = "Bars: 95 % intervals over rounds, the machine's drift in them. Whether two cells differ: kit compare."
NO_INTERVALS = "No intervals: they need two rounds."


class Point(NamedTuple):
    """One value, with the ends of its interval where it has one."""

    x: float
    y: float
    ends: tuple[float, float] | None = None

    def over(self, divisor: float) -> Point:
        """Return the point with its value and interval in another unit."""
        return Point(self.x, self.y / divisor, self.ends and (self.ends[0] / divisor, self.ends[1] / divisor))


class Series(NamedTuple):
    """Cells that differ in the axis only, in its order, each with its value."""

    name: str
    panel: str  # title of the panel that it is drawn in
    cells: list[tuple[int, CellRun]]


def series_of(request: PlotRequest, axis: str) -> tuple[list[Series], list[str]]:
    """Return the series of all profiles along `axis`, in the order of their panels, and a line for each cell left out.

    Training and inference are panels; where one had too many lines to be told apart, so are values of other axes.

    Raises:
        PlotError: no cell has the axis, or none has a number.
    """
    known: list[tuple[str, int, CellRun]] = []
    left_out = []
    for label, profile in request.profiles:
        for key, one in reduce_run(label, profile, details=False).cells.items():
            value = one.cell.value(axis)
            if one.cell.task not in TASKS or not isinstance(value, int):
                continue
            if one.numbers.step_ns is None or value < 1 or one.cell.batch < 1:
                left_out.append(no_number(f"{_of(label, request)}{key}", one.failure))
                continue
            known.append((label, value, one))
    if not known:
        why = f": {left_out[0]}" if left_out else f", for no cell has {axis}"
        raise PlotError(f"nothing to draw by {axis}{why}; choose another --kind, or measure more")
    apart = _panel_axes([one.cell for _, _, one in known], axis, len(request.profiles))
    found: dict[tuple[str, str, str], list[tuple[int, CellRun]]] = {}
    for label, value, one in known:
        line = one.cell.key_without((axis, "task", *apart))
        found.setdefault((line, label, _panel(one.cell, apart)), []).append((value, one))
    first = {line: cells[0][1].cell for (line, _, _), cells in found.items()}
    names = line_names(first, (axis, *apart), request)
    series = [
        Series(one_line(f"{names[line]}{_with(label, request)}"), panel, sorted(cells, key=lambda cell: cell[0]))
        for (line, label, panel), cells in found.items()
    ]
    return sorted(series, key=lambda one: _place(one.cells[0][1].cell, apart)), left_out


def line_names(cells: dict[str, Cell], axes: Sequence[str], request: PlotRequest) -> dict[str, str]:
    """Return what tells the lines apart, other than these axes; of one only, its framework."""
    plain = {key: _without(cell, axes) for key, cell in cells.items()}
    named = label_members(plain, ["backend"])
    return {
        key: request.titles.get(cell.backend, cell.backend) + named[key].removeprefix(cell.backend)
        for key, cell in cells.items()
    }


def draw_line(axes: Axes, points: Sequence[Point], look: Look) -> None:
    """Draw the points, joined in their order, with their intervals."""
    x, y = [one.x for one in points], [one.y for one in points]
    axes.plot(
        x, y, color=look.colour, marker=look.marker, linestyle=look.line, markersize=marker_size(len(points)), zorder=3
    )
    known = [one for one in points if one.ends is not None]
    if known:
        at = np.asarray([(one.x, one.y, *one.ends) for one in known if one.ends], np.float64).T
        # The table's number may lie outside where launches failed: an end is never beyond its point.
        below, above = np.maximum(at[1] - at[2], 0), np.maximum(at[3] - at[1], 0)
        axes.errorbar(at[0], at[1], yerr=(below, above), fmt="none", ecolor=look.colour, elinewidth=0.8, capsize=2)


def workloads_of(cells: Sequence[Cell]) -> str:
    """Return the networks of the cells, named where they are few."""
    names = list(dict.fromkeys(cell.workload for cell in cells))
    return ", ".join(names[:NAMED_MAX]) + (f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else "")


def _panel_axes(cells: Sequence[Cell], axis: str, profiles: int) -> list[str]:
    """Return axes whose values get panels of their own, those with most values first; none where lines are few."""
    values = {other: {cell.value(other) for cell in cells} for other in axes_of(cells)}
    others = [other for other in values if len(values[other]) > 1 and other not in (axis, "task", "backend")]
    apart: list[str] = []
    for other in sorted(others, key=lambda other: -len(values[other])):
        if profiles * len({cell.key_without((axis, "task", *apart)) for cell in cells}) <= LINES_MAX:
            break
        apart.append(other)
    return apart


def _panel(cell: Cell, apart: Sequence[str]) -> str:
    return " · ".join((TASKS[cell.task], *(f"{axis} {cell.value(axis)}" for axis in apart)))


def _place(cell: Cell, apart: Sequence[str]) -> tuple[object, ...]:
    """Return what panels are sorted by: numbers before names."""
    values = [cell.value(axis) for axis in apart]
    return list(TASKS).index(cell.task), *((isinstance(one, str), one or 0) for one in values)


def _without(cell: Cell, axes: Sequence[str]) -> Cell:
    """Return the cell as all of its line are alike."""
    same = msgspec.structs.replace(cell, task="train", parameters=cell.parameters | dict.fromkeys(axes, 0))
    return msgspec.structs.replace(same, **{axis: 0 for axis in axes if axis in AXES})


def _of(label: str, request: PlotRequest) -> str:
    return f"{label}: " if len(request.profiles) > 1 else ""


def _with(label: str, request: PlotRequest) -> str:
    return f" · {label}" if len(request.profiles) > 1 else ""
