"""`blocks`: every block of every member over time: the machine's drift, and who goes along with it.

round 1            round 2
├ a b c a b c … ┤  ├ b a c … ┤      the time between rounds, in which members start, is cut out;
0 s                41 s             ticks say when a round's first block began
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from kit.audit.member import block_arrays
from kit.compare.within import launches_of
from kit.profile.launch import Launch
from kit.report.plot.axes import log_y, plain, time_unit
from kit.report.plot.frame import Picture, PlotError, PlotRequest, framed, panels
from kit.report.plot.groups import HEIGHT_IN, PANELS_MAX, GroupPanel, beyond, columns_of, group_panels, shown_name
from kit.report.plot.style import BAND, Look, looks, marker_size

S = 1e9
# Between two rounds, as a share of a round.
GAP = 0.15
# More ticks than these run into each other in half a page's width.
TICKS_MAX = 6


class Stretch(NamedTuple):
    """The time in which one round of one group, or of a part of it, ran its blocks; in seconds."""

    begin_s: float  # since the first block of the profile
    length_s: float
    at_s: float  # where it stands in the picture


def draw(request: PlotRequest) -> Picture:
    """Return the step time of each block against its begin, a panel for each group.

    Raises:
        KitError: no member has blocks, or `request.baseline` is not there.
    """
    found, left_out = group_panels(request)
    found = [one for one in found if any(_blocks_of(one).values())]
    if not found:
        raise PlotError(f"nothing to draw: {left_out[0] if left_out else 'no group has blocks'}; measure anew")
    shown = found[:PANELS_MAX]
    own_looks = looks(shown_name(row.name, request) for one in shown for row in one.group.rows if row.numbers.step_ns)
    columns = columns_of(shown)
    figure, axes = panels(len(shown), columns, HEIGHT_IN)
    for own_axes, panel in zip(axes, shown, strict=True):
        _draw_group(own_axes, panel, request, own_looks)
    for own_axes in axes[-columns:]:
        own_axes.set_xlabel("time since the first block (s)")
    return framed(
        figure,
        request,
        title="Step time of each block over time",
        looks=own_looks,
        small=["Shaded by turns: rounds; the time between them is cut out, ticks say when each began."],
        left_out=[*left_out, *beyond(len(found))],
    )


def _draw_group(axes: Axes, panel: GroupPanel, request: PlotRequest, own_looks: Mapping[str, Look]) -> None:
    good = _blocks_of(panel)
    first_ns = min(begin for own in panel.profile.cells for one in own.launches for begin in one.blocks.begin_ns)
    stretches = _stretches([one for own in good.values() for one in own], first_ns)
    times_ns = [ns for launches in good.values() for launch in launches for ns in _steps_ns(launch)]
    scale, unit = time_unit(times_ns)
    for number, one in enumerate(stretches.values()):
        if number % 2:
            axes.axvspan(one.at_s - GAP / 2 * one.length_s, one.at_s + (1 + GAP / 2) * one.length_s, color=BAND, lw=0)
    for row in panel.group.rows:
        for launch in good.get(row.cell.key, []):
            look = own_looks[shown_name(row.name, request)]
            stretch, blocks = stretches[launch.group, launch.round], launch.blocks
            shift_s = stretch.at_s - stretch.begin_s
            axes.plot(
                [(begin - first_ns) / S + shift_s for begin in blocks.begin_ns],
                [ns / scale for ns in _steps_ns(launch)],
                color=look.colour,
                marker=look.marker,
                linestyle=look.line,
                linewidth=0.6,
                markersize=marker_size(len(stretches)) / 2,
            )
    log_y([axes], [ns / scale for ns in times_ns])
    ticked = list(stretches.values())[:: -(-len(stretches) // TICKS_MAX)]
    axes.set_xticks([one.at_s for one in ticked], [plain(round(one.begin_s)) for one in ticked])
    axes.grid(visible=False, axis="x")
    axes.set_title(panel.title)
    axes.set_ylabel(f"step ({unit})")


def _blocks_of(panel: GroupPanel) -> dict[str, list[Launch]]:
    """Return, by the keys of its cells, the launches that have blocks to show."""
    launches = launches_of(panel.profile, panel.group.key)
    return {key: [one for one in own if one.gave_number] for key, own in launches.items()}


def _steps_ns(launch: Launch) -> list[float]:
    return [float(step_ns) for step_ns in block_arrays(launch).times_ns("step")]


def _stretches(launches: Sequence[Launch], first_ns: int) -> dict[tuple[str, int], Stretch]:
    """Return where each round of each part of a group stands, in order of time; one after another with small gaps."""
    edges: dict[tuple[str, int], tuple[int, int]] = {}
    for one in launches:
        key, blocks = (one.group, one.round), one.blocks
        begin, end = edges.get(key, (blocks.begin_ns[0], blocks.begin_ns[0]))
        last = max(begin + span for begin, span in zip(blocks.begin_ns, blocks.span_ns, strict=True))
        edges[key] = min([begin, *blocks.begin_ns]), max(end, last)
    placed, at_s = {}, 0.0
    for key, (begin_ns, end_ns) in sorted(edges.items(), key=lambda item: item[1]):
        length_s = (end_ns - begin_ns) / S
        placed[key] = Stretch((begin_ns - first_ns) / S, length_s, at_s)
        at_s += (1 + GAP) * length_s
    return placed
