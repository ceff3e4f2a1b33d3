"""`gain`: how much faster one device or profile is than another, by batch, with a line where it is as fast."""

from __future__ import annotations

from kit.compare.gains import Gain, Place, gains, places_of
from kit.report.plain import one_line
from kit.report.plot.axes import log_x, log_y, ticks_at
from kit.report.plot.frame import Picture, PlotError, PlotRequest, framed, panels
from kit.report.plot.series import TASKS, Point, draw_line, line_names, workloads_of
from kit.report.plot.style import GREY, looks
from kit.report.quantity import counted
from kit.report.words import several
from kit.workloads.parity import PARITY_TOLERANCE

HEIGHT_IN = 3.0
AS_FAST_PCT = 100.0
PAIRED = "Bars: intervals over rounds in which both took turns, as kit compare has them."
UNPAIRED = "No intervals: cells that did not take turns cannot be paired."


def draw(request: PlotRequest) -> Picture:
    """Return the step of the first place in percent of each later one's, training beside inference.

    Raises:
        KitError: there is one place only, none is the baseline, or no cell is in two of them with a number.
    """
    base, *others = places_of(request.profiles, request.baseline)
    every = [one for one in gains([base, *others], PARITY_TOLERANCE) if one.cell.task in TASKS]
    drawn = [one for one in every if _is_drawn(one)]
    left_out = [one_line(f"{one.place}: {one.cell.key}: {_why(one)}") for one in every if not _is_drawn(one)]
    if not drawn:
        raise PlotError(f"nothing to draw: {left_out[0] if left_out else _why_none(base, others[0])}")
    names = line_names(
        {one.cell.key_without(("batch", "task", "device")): one.cell for one in drawn}, ("batch",), request
    )
    lines: dict[tuple[str, str], list[Gain]] = {}
    for one in drawn:
        name = names[one.cell.key_without(("batch", "task", "device"))]
        name = one_line(f"{name}: {one.place}") if len(others) > 1 else name
        lines.setdefault((name, one.cell.task), []).append(one)
    tasks = [task for task in TASKS if any(task == own for _, own in lines)]
    figure, axes = panels(len(tasks), 2, HEIGHT_IN, sharey=True)
    own_looks = looks(name for name, _ in lines)
    for (name, task), own in lines.items():
        own.sort(key=lambda one: one.cell.batch)
        points = [Point(one.cell.batch, one.gain_pct or 0, one.interval_pct) for one in own]
        draw_line(axes[tasks.index(task)], points, own_looks[name])
    log_x(axes, [one.cell.batch for one in drawn])
    ticks_at(axes, [one.cell.batch for one in drawn])
    ends = [end for one in drawn for end in one.interval_pct or ()]
    log_y(axes, [AS_FAST_PCT, *(one.gain_pct or 0 for one in drawn)], ends)
    for own_axes, task in zip(axes, tasks, strict=True):
        own_axes.axhline(AS_FAST_PCT, color=GREY, linewidth=1, linestyle="--", zorder=1)
        own_axes.set_title(TASKS[task])
        own_axes.set_xlabel("batch (samples per step)")
    axes[0].set_ylabel("gain (%)")
    other = others[0].name if len(others) == 1 else "the other"
    rounds = ", ".join(f"{one.name} in {counted(one.run.headline.rounds, 'round')}" for one in (base, *others))
    return framed(
        figure,
        request,
        title=f"Gain over {base.name} by batch: {workloads_of([one.cell for one in drawn])}",
        looks=own_looks,
        small=[
            f"Gain: time of {base.name} ÷ time of {other}; above 100 % {other} is faster.",
            PAIRED if ends else f"{UNPAIRED} Measured once: {rounds}.",
        ],
        left_out=left_out,
    )


def _why_none(base: Place, other: Place) -> str:
    """Return what two places without a common cell differ in: the batches, or more."""
    base_cells, other_cells = ([one.cell for _, one in place.cells.values()] for place in (base, other))
    but_for_batch = {cell.key_without(("device", "batch")) for cell in base_cells}
    if any(cell.key_without(("device", "batch")) in but_for_batch for cell in other_cells):
        ours, theirs = (
            several([str(batch) for batch in sorted({cell.batch for cell in cells})])
            for cells in (base_cells, other_cells)
        )
        return f"{base.name} has batch {ours}, {other.name} has {theirs}; measure both at the same batches"
    return f"no cell of {base.name} is in {other.name}, too; measure both with one suite"


def _is_drawn(one: Gain) -> bool:
    return one.gain_pct is not None and one.cell.batch > 0


def _why(one: Gain) -> str:
    if one.blocked is None:
        return "has no number in both"
    values = " and ".join(f"{value} in {', '.join(labels)}" for value, labels in one.blocked.values)
    return f"not comparable, {one.blocked.kind}: {values}; measure both alike"
