"""`platforms`: the time of each network and framework on every platform, points with intervals.

The axis is logarithmic, on which the length of a bar would mean nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from kit.compare.across import compare_runs
from kit.compare.cell_numbers import judged_ns
from kit.compare.platforms import are_platforms
from kit.compare.rows import GroupRows, Row
from kit.compare.runs import reduce_run
from kit.errors import KitError
from kit.report.answer import answer
from kit.report.plain import one_line
from kit.report.plot import picture
from kit.report.plot.picture import Look, Picture, PlotRequest, Point

HEIGHT_IN = 2.4
# Of the distance between two networks, that the points of one are apart: the rest parts them from the next.
POINTS_WIDTH = 0.6
# More names than these beside each other overlap unless they are turned.
LEVEL_MAX = 9
TASKS = {"train": "training", "infer": "inference", "fit": "fit"}
NOTE = "Bars: 95 % intervals over the rounds of one run. kit compare decides whether two platforms differ."


def draw(request: PlotRequest) -> Picture:
    """Return a panel for each task and batch; KitError where the profiles are of one platform."""
    runs = [reduce_run(label, profile) for label, profile in request.profiles]
    if not are_platforms(runs):
        raise KitError("nothing to draw: all ran on one machine and device; give another profile, or --kind rounds")
    comparison = compare_runs(runs, baseline=request.baseline, explain=True)
    sides = [one_line(head.label) for head in comparison.headlines]
    looks = {side: look | {"linestyle": "none"} for side, look in picture.looks_of(sides).items()}
    by_panel: dict[str, list[GroupRows]] = {}
    differ = len({row.cell.batch for group in comparison.groups for row in group.rows}) > 1
    for group in comparison.groups:
        batches = dict.fromkeys(f"batch {row.cell.batch}" for row in group.rows)
        title = " · ".join([TASKS[group.rows[0].cell.task], *(batches if differ and len(batches) == 1 else ())])
        by_panel.setdefault(title, []).append(group)
    left_out = [
        picture.no_number(f"{row.side}: {row.cell.key}", row.failure)
        for group in comparison.groups
        for row in group.rows
        if not row.numbers.step_ns
    ] + [
        one_line(f"{row.side}: {row.cell.key}: {answer(row)}")
        for group in comparison.groups
        for row in group.rows
        if row.blocked
    ]
    if all(row.numbers.step_ns is None for group in comparison.groups for row in group.rows):
        raise KitError(f"nothing to draw: {left_out[0]}")
    figure, panels = picture.panels(len(by_panel), 1, HEIGHT_IN, "")
    for axes, (title, groups) in zip(panels, by_panel.items(), strict=True):
        axes.set_title(title)
        _draw_panel(axes, groups, sides, looks, request)
    hollow = picture.hollow_notes(row.numbers for group in comparison.groups for row in group.rows if not row.blocked)
    return Picture(figure, "Comparison of platforms", looks, [NOTE, *hollow], left_out)


def _draw_panel(
    axes: Axes, groups: Sequence[GroupRows], sides: Sequence[str], looks: dict[str, Look], request: PlotRequest
) -> None:
    # A network's groups of other sizes are other questions, with places of their own.
    places = list(dict.fromkeys((at, row.member) for at, group in enumerate(groups) for row in group.rows))
    known = [
        (places.index((at, row.member)), row)
        for at, group in enumerate(groups)
        for row in group.rows
        if judged_ns(row.numbers) and not row.blocked
    ]
    if not known:
        return
    ends_ns = [end for _, row in known for end in _ends_ns(row)]
    scale, unit = picture.time_unit([*(_time_ns(row) for _, row in known), *ends_ns])
    picture.set_log(axes, "y", [time_ns / scale for time_ns in (*(_time_ns(row) for _, row in known), *ends_ns)])
    for number, side in enumerate(sides):
        left = (number / (len(sides) - 1) - 0.5) * POINTS_WIDTH
        points = [
            Point(
                place + left,
                _time_ns(row) / scale,
                tuple(end_ns / scale for end_ns in _ends_ns(row)),
                hollow=row.numbers.contention_pct is not None,
            )
            for place, row in known
            if one_line(row.side) == side
        ]
        if points:
            picture.draw_points(axes, points, looks[side])
    for place in range(1, len(places), 2):
        axes.axvspan(place - 0.5, place + 0.5, color=picture.BAND, lw=0, zorder=0)
    axes.set_xlim(-0.5, len(places) - 0.5)
    names = [_name(groups[at], member, request) for at, member in places]
    axes.set_xticks(range(len(places)), names, rotation=0 if len(places) <= LEVEL_MAX else 30)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(f"{'fit' if known[0][1].numbers.fit else 'step'} ({unit})")


def _name(group: GroupRows, member: str, request: PlotRequest) -> str:
    """Return ``mlp`` above ``PyTorch``, with what else tells a group apart, but for what the panel says."""
    cell = next(row.cell for row in group.rows if row.member == member)
    apart = [request.titles.get(part, part) for part in group.title[1:] if part != f"batch {cell.batch}"]
    return "\n".join(map(one_line, (cell.workload, *apart, request.titles.get(member, member))))


def _ends_ns(row: Row) -> tuple[float, ...]:
    """Return the ends of a step's interval; of a fit, or of one round, none."""
    return (row.numbers.step_interval_ns or ()) if row.numbers.fit is None else ()


def _time_ns(row: Row) -> float:
    return (row.numbers.fit.total_ns if row.numbers.fit is not None else row.numbers.step_ns) or 0.0
