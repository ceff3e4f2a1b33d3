"""`batch`, `threads`, `units` and so on: time against the axis that a sweep varies, training beside inference.

By batch it is the time of a sample, as steps of different batches do not compare; by other axes that of a step.
"""

from __future__ import annotations

import math

from kit.compare.rows import Numbers
from kit.report.plot.axes import log_x, log_y, ticks_at, time_unit, whole_x
from kit.report.plot.frame import Picture, PlotRequest, framed, panels
from kit.report.plot.series import INTERVALS, NO_INTERVALS, Point, draw_line, series_of, workloads_of
from kit.report.plot.style import looks

HEIGHT_IN = 3.0
COLUMNS = 2
LABELS = {"batch": "batch (samples per step)", "units": "units (per layer)"}
# Counted, not doubled.
LINEAR = ("layers", "depth", "heads")


def draw(request: PlotRequest) -> Picture:
    """Return the picture of the kind that is asked for.

    Raises:
        PlotError: no cell has the axis, or none has a number.
    """
    axis = request.kind
    what = "time per sample" if axis == "batch" else "step time"
    series, left_out = series_of(request, axis)
    lines = [[_point_ns(value, run.numbers, axis) for value, run in one.cells] for one in series]
    scale, unit = time_unit(point.y for own in lines for point in own)
    lines = [[point.over(scale) for point in own] for own in lines]
    titles = list(dict.fromkeys(one.panel for one in series))
    figure, axes = panels(len(titles), COLUMNS, HEIGHT_IN, sharey=True)
    own_looks = looks(one.name for one in series)
    for one, own in zip(series, lines, strict=True):
        draw_line(axes[titles.index(one.panel)], own, own_looks[one.name])
    every = [point for own in lines for point in own]
    ends = [end for one in every for end in one.ends or ()]
    log_y(axes, [one.y for one in every], ends)
    if axis in LINEAR:
        whole_x(axes)
    else:
        log_x(axes, [one.x for one in every])
        ticks_at(axes, [one.x for one in every])
    for one_axes, title in zip(axes, titles, strict=True):
        one_axes.set_title(title)
    for one_axes in axes[-COLUMNS:]:
        one_axes.set_xlabel(LABELS.get(axis, axis))
    for one_axes in axes[::COLUMNS]:
        one_axes.set_ylabel(f"{what} ({unit})")
    return framed(
        figure,
        request,
        title=f"{what.capitalize()} by {axis}: {workloads_of([run.cell for one in series for _, run in one.cells])}",
        looks=own_looks,
        small=[INTERVALS if ends else NO_INTERVALS],
        left_out=left_out,
    )


def _point_ns(value: int, numbers: Numbers, axis: str) -> Point:
    """Return a cell's step, or of a sweep of batches its part of a sample."""
    return Point(value, numbers.step_ns or math.nan, numbers.step_interval_ns).over(value if axis == "batch" else 1)
