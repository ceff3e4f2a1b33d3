"""`gain`: how much faster one device or profile is than another, by batch, with a line where it is as fast."""

from __future__ import annotations

from kit.compare.gains import Gain, Place, gains, places_of
from kit.compare.rows import Numbers
from kit.errors import KitError
from kit.report.plain import one_line
from kit.report.plot import picture
from kit.report.plot.picture import GREY, Picture, PlotRequest, Point
from kit.report.plot.sweep import LABELS, TASKS, Curves, draw_curves, line_names
from kit.report.quantity import counted, several

PAIRED = "Bars: the intervals of kit compare, over rounds in which both took turns."
OF_A_LINE = ("batch", "task", "device")  # axes on which the points of a line differ
UNPAIRED = "No bars: cells that did not take turns cannot be paired."


def draw(request: PlotRequest) -> Picture:
    """Return the first place's step in percent of each later one's; KitError where there is nothing to compare."""
    base, *others = places_of(request.profiles, request.baseline)
    drawn, left_out = [], []
    for gain in gains([base, *others]):
        if gain.cell.task in TASKS and gain.gain_pct is not None and gain.cell.batch > 0:
            drawn.append(gain)
        elif gain.cell.task in TASKS:
            left_out.append(one_line(f"{gain.place}: {gain.cell.key}: {_why(gain)}"))
    if not drawn:
        raise KitError(f"nothing to draw: {left_out[0] if left_out else _why_none(base, others[0])}")
    names = line_names({gain.cell.key_without(OF_A_LINE): gain.cell for gain in drawn}, ("batch",), request)
    cells, numbers = {place.name: place.cells for place in (base, *others)}, list[Numbers]()
    curves: Curves = {}
    for gain in sorted(drawn, key=lambda gain: list(TASKS).index(gain.cell.task)):
        name = names[gain.cell.key_without(OF_A_LINE)]
        name = one_line(f"{name}: {gain.place}") if len(others) > 1 else name
        key = gain.cell.key_without(("device",))
        of_both = [cells[place][key][1].numbers for place in (base.name, gain.place)]
        hollow = any(each.contention_pct is not None for each in of_both)
        numbers += of_both
        point = Point(gain.cell.batch, gain.gain_pct or 0, gain.interval_pct or (), hollow=hollow)
        curves.setdefault((TASKS[gain.cell.task], name), []).append(point)
    curves = {line: sorted(points) for line, points in curves.items()}
    figure, panels, looks = draw_curves(curves, LABELS["batch"], "gain (%)", values=[100.0])
    for panel in panels.values():
        panel.axhline(100.0, color=GREY, linewidth=1, linestyle="--", zorder=1)
    other = others[0].name if len(others) == 1 else "the other"
    rounds = ", ".join(f"{place.name} in {counted(place.run.headline.rounds, 'round')}" for place in (base, *others))
    is_paired = any(gain.interval_pct for gain in drawn)
    notes = [
        f"Gain: time of {base.name} ÷ time of {other}; above 100 % {other} is faster.",
        PAIRED if is_paired else f"{UNPAIRED} One run each: {rounds}.",
        *(picture.hollow_notes(numbers, of="") if is_paired else picture.hollow_notes(numbers)),
    ]
    title = f"Gain over {base.name} by batch: {several(list(dict.fromkeys(gain.cell.workload for gain in drawn)))}"
    return Picture(figure, title, looks, notes, left_out)


def _why_none(base: Place, other: Place) -> str:
    """Return how two places without a common cell differ: in their batches, or in more."""
    cells = [[run.cell for _, run in place.cells.values()] for place in (base, other)]
    but_for_batch = [{cell.key_without(("device", "batch")) for cell in of_place} for of_place in cells]
    if but_for_batch[0] & but_for_batch[1]:
        batches = [several([str(batch) for batch in sorted({cell.batch for cell in of_place})]) for of_place in cells]
        return f"{base.name} has batch {batches[0]}, {other.name} has {batches[1]}; measure both at the same batches"
    return f"{base.name} and {other.name} have no common cell; measure both with the same suite"


def _why(gain: Gain) -> str:
    if gain.blocked is None:
        return "has no number in one of the two"
    values = " and ".join(f"{value} in {', '.join(labels)}" for value, labels in gain.blocked.values)
    return f"not comparable, as {gain.blocked.kind} is {values}; measure both alike"
