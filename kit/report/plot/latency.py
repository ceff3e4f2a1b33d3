"""`latency`: what a larger batch buys in throughput and costs in latency, a point for each batch."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from kit.report.plot.axes import log_x, log_y, plain, time_unit
from kit.report.plot.frame import Picture, PlotError, PlotRequest, framed, no_number, panels
from kit.report.plot.series import Point, draw_line, series_of, workloads_of
from kit.report.plot.style import looks

HEIGHT_IN = 3.2
COLUMNS = 2
LABEL_PT = 6
# To the right of the last point, as a share of the axis.
LABEL_ROOM = 0.18
# Of a label from its point, in points.
OFFSET_PT = (4, -7)


def draw(request: PlotRequest) -> Picture:
    """Return throughput against the 95th percentile of the step, joined in order of batch and labelled with it.

    Raises:
        PlotError: no cell of training or inference has both.
    """
    series, left_out = series_of(request, "batch")
    known = []
    for one in series:
        cells = [own for own in one.cells if own[1].numbers.p95_ns and own[1].numbers.samples_per_s]
        left_out += [no_number(run.cell.key, None) for _, run in one.cells if not run.numbers.p95_ns]
        if cells:
            known.append(one._replace(cells=cells))
    if not known:
        raise PlotError("nothing to draw: no cell has a p95 of its steps; choose another --kind")
    numbers = [run.numbers for one in known for _, run in one.cells]
    scale, unit = time_unit(one.p95_ns or 0 for one in numbers)
    titles = list(dict.fromkeys(one.panel for one in known))
    figure, axes = panels(len(titles), COLUMNS, HEIGHT_IN, sharey=True)
    own_looks = looks(one.name for one in known)
    labels: dict[Axes, list[list[Annotation]]] = {one: [] for one in axes}
    for one in known:
        own_axes, look = axes[titles.index(one.panel)], own_looks[one.name]
        points = [Point((run.numbers.p95_ns or 0) / scale, run.numbers.samples_per_s or 0) for _, run in one.cells]
        draw_line(own_axes, points, look)
        labels[own_axes].append(
            [_label(own_axes, batch, point, look.colour) for (batch, _), point in zip(one.cells, points, strict=True)]
        )
    log_y(axes, [one.samples_per_s or 0 for one in numbers])
    for own_axes, title in zip(axes, titles, strict=True):
        drawn = [run.numbers for one in known if one.panel == title for _, run in one.cells]
        p95 = [(one.p95_ns or 0) / scale for one in drawn]
        log_x([own_axes], p95)
        own_axes.set_xlim(right=max(p95) * max((max(p95) / min(p95)) ** LABEL_ROOM, 1.1))
        own_axes.set_title(title)
        own_axes.set_xlabel(f"p95 of a step ({unit})")
    for own_axes in axes[::COLUMNS]:
        own_axes.set_ylabel("throughput (samples/s)")
    picture = framed(
        figure,
        request,
        title=f"Throughput against latency: {workloads_of([run.cell for one in known for _, run in one.cells])}",
        looks=own_looks,
        small=["Numbers at points: batch. Up and to the left is better."],
        left_out=left_out,
    )
    for own in labels.values():
        _thin(own)
    return picture


def _label(axes: Axes, batch: int, point: Point, colour: str) -> Annotation:
    label = axes.annotate(
        plain(batch),
        (point.x, point.y),
        xytext=OFFSET_PT,
        textcoords="offset points",
        size=LABEL_PT,
        color=colour,
    )
    label.set_in_layout(False)  # a label takes no room from the panel
    return label


def _thin(lines: Sequence[Sequence[Annotation]]) -> None:
    """Hide labels that would lie over another or over a point; those of each line's ends stay before the others."""
    ends = [label for own in lines for label in (own[0], own[-1])]
    points = [label.axes.transData.transform(label.xy) for own in lines for label in own if label.axes]
    kept: list[Bbox] = []
    for label in dict.fromkeys([*ends, *(label for own in lines for label in own)]):
        box = label.get_window_extent()
        hidden = any(box.overlaps(other) for other in kept) or any(box.contains(x, y) for x, y in points)
        label.set_visible(not hidden)
        if not hidden:
            kept.append(box)
