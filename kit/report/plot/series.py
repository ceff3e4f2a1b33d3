"""Lines of cells that differ in one axis only, as of a sweep, and how a line is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from matplotlib.axes import Axes

from kit.compare.naming import label_members
from kit.compare.runs import CellRun, reduce_run
from kit.profile.cell import Cell
from kit.report.plain import one_line
from kit.report.plot.frame import PlotError, PlotRequest, no_number
from kit.report.plot.style import Look, marker_size

TASKS = {"train": "training", "infer": "inference"}
NAMED_MAX = 3  # networks in a title
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
    task: str
    cells: list[tuple[int, CellRun]]


def series_of(request: PlotRequest, axis: str) -> tuple[list[Series], list[str]]:
    """Return the series of training and inference of all profiles along `axis`, and a line for each cell left out.

    Raises:
        PlotError: no cell has the axis, or none has a number.
    """
    found: dict[tuple[str, str, str], list[tuple[int, CellRun]]] = {}
    left_out = []
    for label, profile in request.profiles:
        for key, one in reduce_run(label, profile, details=False).cells.items():
            value = one.cell.value(axis)
            if one.cell.task not in TASKS or not isinstance(value, int):
                continue
            if one.numbers.step_ns is None or value < 1 or one.cell.batch < 1:
                left_out.append(no_number(f"{_of(label, request)}{key}", one.failure))
                continue
            line = one.cell.key_without((axis, "task"))
            found.setdefault((line, label, one.cell.task), []).append((value, one))
    if not found:
        why = f": {left_out[0]}" if left_out else f", for no cell has {axis}"
        raise PlotError(f"nothing to draw by {axis}{why}; choose another --kind, or measure more")
    names = line_names({line: cells[0][1].cell for (line, _, _), cells in found.items()}, axis, request)
    series = [
        Series(one_line(f"{names[line]}{_with(label, request)}"), task, sorted(cells, key=lambda cell: cell[0]))
        for (line, label, task), cells in found.items()
    ]
    return sorted(series, key=lambda one: list(TASKS).index(one.task)), left_out


def line_names(cells: dict[str, Cell], axis: str, request: PlotRequest) -> dict[str, str]:
    """Return what tells the lines apart; of one only, its framework."""
    plain = {key: _without(cell, axis) for key, cell in cells.items()}
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


def _without(cell: Cell, axis: str) -> Cell:
    """Return the cell as all of its line are alike."""
    same = msgspec.structs.replace(cell, task="train")
    if axis in cell.parameters:
        return msgspec.structs.replace(same, parameters={**cell.parameters, axis: 0})
    return msgspec.structs.replace(same, **{axis: 0})


def _of(label: str, request: PlotRequest) -> str:
    return f"{label}: " if len(request.profiles) > 1 else ""


def _with(label: str, request: PlotRequest) -> str:
    return f" · {label}" if len(request.profiles) > 1 else ""
