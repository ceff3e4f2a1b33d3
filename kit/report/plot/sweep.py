"""What a sweep varies, training beside inference: time against `batch`, `units` and so on, and `latency`.

By batch it is the time of a sample, as steps of different batches do not compare; by devices the throughput, which is
to grow with them; by other axes the time of a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

import msgspec
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from kit.compare.naming import axes_of, label_members
from kit.compare.runs import CellRun, reduce_run
from kit.errors import KitError
from kit.profile.cell import AXES, Cell
from kit.report.plain import one_line
from kit.report.plot import picture
from kit.report.plot.picture import Look, Picture, PlotRequest, Point
from kit.report.quantity import several

# By the title of a panel and the name of a line: its cells with their values on the axis; its points.
Lines = dict[tuple[str, str], list[tuple[int, CellRun]]]
Curves = dict[tuple[str, str], list[Point]]

TASKS = {"train": "training", "infer": "inference"}
HEIGHT_IN = 3.0
LABELS = {
    "devices": "devices (sharing each batch)",
    "batch": "batch (samples per step)",
    "units": "units (per layer)",
}
LINEAR = ("layers", "depth", "heads", "devices")  # are counted, others doubled
LINES_MAX = 8  # of a panel: nobody can follow more, whatever they look like
LABEL_ROOM = 0.12  # to the right of the last point of `latency`, as a share of the axis
INTERVALS = "Bars: 95 % intervals over rounds, with the machine's drift. kit compare decides whether two cells differ."
NO_INTERVALS = "No bars: intervals need two rounds."
UP_LEFT = "Numbers at points: batch size. Up and to the left is better."


def draw(request: PlotRequest) -> Picture:
    """Return the picture of what a sweep varies; KitError where no cell has the axis, or none a number."""
    axis, measured = ("batch", "p95_ns") if request.kind == "latency" else (request.kind, "step_ns")
    lines, left_out = _lines(request, axis, measured)
    every = [cell for cells in lines.values() for cell in cells]
    points = [_point(request.kind, *cell, 1) for cell in every]
    times_ns = [[point.x] if request.kind == "latency" else [point.y, *point.ends] for point in points]
    scale, unit = picture.time_unit([time_ns for of_point in times_ns for time_ns in of_point])
    hollow = picture.hollow_notes(run.numbers for _, run in every)
    curves = {line: [_point(request.kind, *cell, scale) for cell in cells] for line, cells in lines.items()}
    workloads = several(list(dict.fromkeys(run.cell.workload for _, run in every)))
    if request.kind == "latency":
        figure, axes, looks = draw_curves(curves, f"p95 of a step ({unit})", "throughput (samples/s)")
        for panel in axes.values():
            low, high = panel.get_xlim()
            panel.set_xlim(low, high * (high / low) ** LABEL_ROOM)
        figure.draw_without_rendering()  # now every point has its place on the page
        for title, panel in axes.items():
            _label(panel, {name: points for (of_panel, name), points in curves.items() if of_panel == title}, looks)
        return Picture(figure, f"Throughput against latency: {workloads}", looks, [UP_LEFT, *hollow], left_out)
    if axis == "devices":
        what, unit = "throughput", "samples/s"
    else:
        what = "time per sample" if axis == "batch" else "step time"
    figure, axes, looks = draw_curves(curves, LABELS.get(axis, axis), f"{what} ({unit})", linear=axis in LINEAR)
    note = INTERVALS if any(point.ends for point in points) else NO_INTERVALS
    return Picture(figure, f"{what.capitalize()} by {axis}: {workloads}", looks, [note, *hollow], left_out)


def draw_curves(
    curves: Curves, xlabel: str, ylabel: str, *, linear: bool = False, values: Sequence[float] = ()
) -> tuple[Figure, dict[str, Axes], dict[str, Look]]:
    """Return a figure of the curves, its panels by their titles, and the looks; y axes show `values`, too."""
    titles, looks = list(dict.fromkeys(title for title, _ in curves)), picture.looks_of(name for _, name in curves)
    figure, axes = picture.panels(len(titles), 2, HEIGHT_IN, xlabel, ylabel, sharey=True)
    by_title = dict(zip(titles, axes, strict=True))
    for (title, name), line in curves.items():
        by_title[title].set_title(title)
        picture.draw_points(by_title[title], line, looks[name])
    points = [point for line in curves.values() for point in line]
    x, y = [point.x for point in points], [point.y for point in points]
    ends = [end for point in points for end in point.ends]
    for panel in axes:
        picture.set_log(panel, "y", [*values, *y, *ends])
        if linear:
            low, high = panel.get_xlim()
            panel.set_xlim(min(low, *x) - 0.1, max(high, *x) + 0.1)  # where there is one count, its tick has room
            panel.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        else:
            picture.set_log(panel, "x", x, ticked=all(isinstance(value, int) for value in x))
    return figure, by_title, looks


def line_names(cells: Mapping[str, Cell], axes: Sequence[str], request: PlotRequest) -> dict[str, str]:
    """Return by the same keys what distinguishes the lines, apart from these axes; of one line its framework."""
    alike = dict.fromkeys((axis for axis in axes if axis in AXES), 0) | {"task": "train"}
    bare = {
        key: msgspec.structs.replace(cell, **alike, parameters=cell.parameters | dict.fromkeys(axes, 0))
        for key, cell in cells.items()
    }
    names = label_members(bare, ["backend"])
    backends = {key: cell.backend for key, cell in cells.items()}
    return {key: request.titles.get(name, name) + names[key].removeprefix(name) for key, name in backends.items()}


def _point(kind: str, value: int, run: CellRun, scale: float) -> Point:
    """Return what is drawn of a cell, its times in units of so many nanoseconds."""
    numbers, hollow = run.numbers, run.numbers.contention_pct is not None
    if kind == "latency":
        return Point((numbers.p95_ns or 0) / scale, numbers.samples_per_s or 0, label=f"{value:,}", hollow=hollow)
    ends_ns = numbers.step_interval_ns or ()
    if kind == "devices":
        ends = tuple(run.cell.batch * 1e9 / end for end in reversed(ends_ns))
        return Point(value, numbers.samples_per_s or 0, ends, hollow=hollow)
    if kind == "batch":
        scale *= value
    return Point(value, (numbers.step_ns or 0) / scale, tuple(end / scale for end in ends_ns), hollow=hollow)


def _label(panel: Axes, curves: Mapping[str, Sequence[Point]], looks: Mapping[str, Look]) -> None:
    """Write the label of each point where it covers no other label and no point; the ends of curves come first."""
    every = [(point, looks[name]["color"]) for name, points in curves.items() for point in points]
    ends = [(point, looks[name]["color"]) for name, points in curves.items() for point in (points[0], points[-1])]
    places = panel.transData.transform([(point.x, point.y) for point, _ in every])
    shown: list[Bbox] = []
    for point, colour in dict.fromkeys([*ends, *every]):
        label = panel.annotate(point.label, (point.x, point.y), (4, -7), textcoords="offset points", size=6)
        label.set(color=colour, in_layout=False)
        box = label.get_window_extent()
        if any(map(box.overlaps, shown)) or any(box.contains(x, y) for x, y in places):
            label.remove()
        else:
            shown.append(box)


def _lines(request: PlotRequest, axis: str, measured: str) -> tuple[Lines, list[str]]:
    """Return the lines of all profiles along `axis`, in the order of their panels, and a line for each cell left out.

    Training and inference are panels. Where one would have too many lines, values of other axes are panels, too. By
    devices each batch is a panel (strong scaling), and each batch a device (weak scaling).
    """
    runs, left_out = [], []
    for label, profile in request.profiles:
        suffix = f" · {label}" if len(request.profiles) > 1 else ""
        for key, run in reduce_run(label, profile, details=False).cells.items():
            value = run.cell.value(axis)
            if run.cell.task not in TASKS or not isinstance(value, int):
                continue
            what = f"{label}: {key}" if suffix else key
            if run.numbers.step_ns and getattr(run.numbers, measured) is None:
                left_out.append(one_line(f"{what}: no p95 of clean cycles"))
            elif getattr(run.numbers, measured) is None or value < 1 or run.cell.batch < 1:
                left_out.append(picture.no_number(what, run.failure))
            else:
                runs.append((suffix, value, run))
    if not runs:
        why = f": {left_out[0]}" if left_out else f": no cell has {axis}"
        raise KitError(f"nothing to draw by {axis}{why}; choose another --kind, or measure more")
    cells = [run.cell for _, _, run in runs]
    by_batch = axis == "devices" and len({cell.batch for cell in cells}) > 1
    batch = ["batch"] if by_batch else []
    apart = _panel_axes(cells, axis, len(request.profiles), batch)
    keys = {cell.key: cell.key_without((axis, "task", *apart)) for cell in cells}
    names = line_names({keys[cell.key]: cell for cell in reversed(cells)}, (axis, *apart), request)
    tasks = list(TASKS)
    runs.sort(key=lambda run: [tasks.index(run[2].cell.task), *(run[2].cell.value(other) or 0 for other in apart)])
    lines: Lines = {}
    for suffix, value, run in runs:
        title = [TASKS[run.cell.task], *(f"{other} {run.cell.value(other)}" for other in apart if other not in batch)]
        name = one_line(names[keys[run.cell.key]] + suffix)
        batches = [f"batch {run.cell.batch}", f"batch {run.cell.batch // value} a device"] if by_batch else [""]
        for of_batch in batches:
            lines.setdefault((" · ".join(filter(None, [*title, of_batch])), name), []).append((value, run))
    lines = {line: sorted(cells, key=itemgetter(0)) for line, cells in lines.items()}
    return _without_repeats(lines) if by_batch else lines, left_out


def _without_repeats(lines: Lines) -> Lines:
    """Return the lines without panels of one value on the axis, where all of their cells are in other panels, too."""
    values: dict[str, set[int]] = {}
    for (panel, _), cells in lines.items():
        values.setdefault(panel, set()).update(value for value, _ in cells)
    elsewhere = {run.cell.key for (panel, _), cells in lines.items() if len(values[panel]) > 1 for _, run in cells}
    alone = {panel for (panel, _), cells in lines.items() if not elsewhere.issuperset(run.cell.key for _, run in cells)}
    return {(panel, name): cells for (panel, name), cells in lines.items() if len(values[panel]) > 1 or panel in alone}


def _panel_axes(cells: Sequence[Cell], axis: str, profiles: int, apart: Sequence[str] = ()) -> list[str]:
    """Return `apart` and axes whose values get panels of their own, most values first, until lines are few."""
    counts = {other: len({cell.value(other) for cell in cells}) for other in axes_of(cells)}
    others = [other for other in counts if counts[other] > 1 and other not in (axis, "task", "backend", *apart)]
    apart = list(apart)
    for other in sorted(others, key=lambda other: -counts[other]):
        if profiles * len({cell.key_without((axis, "task", *apart)) for cell in cells}) <= LINES_MAX:
            break
        apart.append(other)
    return apart
