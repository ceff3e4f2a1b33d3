"""`platforms`: the time of each network and framework on every platform, bars on a logarithmic axis."""

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
from kit.report.plot.picture import GREY, Look, Picture, PlotRequest

HEIGHT_IN = 2.4
# Of the distance between two networks; the rest parts them.
BARS_WIDTH = 0.8
# More names than these beside each other overlap unless they are turned.
LEVEL_MAX = 9
TASKS = {"train": "training", "infer": "inference", "fit": "fit"}
NOTE = "Bars begin at the axis, which is logarithmic: their ends count. Intervals: 95 %, over the rounds of one run."


def draw(request: PlotRequest) -> Picture:
    """Return a panel for each task and batch; KitError where the profiles are of one platform."""
    runs = [reduce_run(label, profile) for label, profile in request.profiles]
    if not are_platforms(runs):
        raise KitError("nothing to draw: all ran on one machine and device; give another profile, or --kind rounds")
    comparison = compare_runs(runs, baseline=request.baseline, explain=True)
    sides = [one_line(head.label) for head in comparison.headlines]
    # A square, not a line, stands for a bar.
    looks = {side: look | {"marker": "s", "linestyle": "none"} for side, look in picture.looks_of(sides).items()}
    by_panel: dict[str, list[GroupRows]] = {}
    differ = len({row.cell.batch for group in comparison.groups for row in group.rows}) > 1
    for group in comparison.groups:
        cell = group.rows[0].cell
        title = " · ".join([TASKS[cell.task], *([f"batch {cell.batch}"] if differ else [])])
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
    return Picture(figure, "Platforms side by side", looks, [NOTE, *hollow], left_out)


def _draw_panel(
    axes: Axes, groups: Sequence[GroupRows], sides: Sequence[str], looks: dict[str, Look], request: PlotRequest
) -> None:
    members = list(dict.fromkeys((group.rows[0].cell.workload, row.member) for group in groups for row in group.rows))
    rows = [row for group in groups for row in group.rows if judged_ns(row.numbers) and not row.blocked]
    if not rows:
        return
    times_ns = [_time_ns(row) for row in rows]
    ends_ns = [end for row in rows if row.numbers.fit is None for end in row.numbers.step_interval_ns or ()]
    scale, unit = picture.time_unit([*times_ns, *ends_ns])
    width = BARS_WIDTH / len(sides)
    picture.set_log(axes, "y", [time_ns / scale for time_ns in (*times_ns, *ends_ns)])
    bottom = axes.get_ylim()[0]
    for row, time_ns in zip(rows, times_ns, strict=True):
        side = one_line(row.side)
        at = members.index((row.cell.workload, row.member)) + (sides.index(side) - (len(sides) - 1) / 2) * width
        colour = looks[side]["color"]
        face = colour if row.numbers.contention_pct is None else picture.HOLLOW["markerfacecolor"]
        axes.bar(at, time_ns / scale - bottom, width * 0.9, bottom, color=face, edgecolor=colour, lw=0.7, zorder=2)
        if row.numbers.step_interval_ns is not None and row.numbers.fit is None:
            low, high = (end / scale for end in row.numbers.step_interval_ns)
            reach = [[max(0.0, time_ns / scale - low)], [max(0.0, high - time_ns / scale)]]
            axes.errorbar(at, time_ns / scale, yerr=reach, fmt="none", ecolor=GREY, elinewidth=0.8, capsize=2, zorder=3)
    names = [f"{one_line(workload)}\n{one_line(request.titles.get(name, name))}" for workload, name in members]
    axes.set_xticks(range(len(members)), names, rotation=0 if len(members) <= LEVEL_MAX else 30)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(f"{'fit' if rows[0].numbers.fit else 'step'} ({unit})")


def _time_ns(row: Row) -> float:
    return (row.numbers.fit.total_ns if row.numbers.fit is not None else row.numbers.step_ns) or 0.0
