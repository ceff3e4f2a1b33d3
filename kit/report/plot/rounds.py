"""`rounds`: what a verdict rests on: each member's ratio to the baseline, cycle by cycle and round by round.

1.4 ┤      ·               · within a cycle   ● of a round
    │  ·●·   ·●   ●· │ ┼   ┼ of the whole run, with its interval
1.0 ┤────────────────┼───  the baseline
       1     2    3    all
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from kit.compare.round_ratios import RoundRatios, round_ratios
from kit.report.plot.axes import log_y
from kit.report.plot.frame import Picture, PlotError, PlotRequest, framed, panels
from kit.report.plot.groups import HEIGHT_IN, PANELS_MAX, GroupPanel, beyond, columns_of, group_panels, shown_name
from kit.report.plot.series import Point, draw_line
from kit.report.plot.style import GREY, Look, looks, marker_size

# Of the width of a round: what all members take, and what the cycles of one do of its own part.
MEMBERS_WIDTH = 0.8
CYCLES_WIDTH = 0.7
# What stands for the whole run, of the width of all rounds together; it is no narrower than one.
WHOLE_WIDTH = 0.08
CYCLE_PT = 1.5
CYCLE_ALPHA = 0.45
# More ticks than these run into each other in half a page's width.
TICKS_MAX = 8

FAINT = "Faint: within a cycle. "
CLEAR = "Clear: of a round. All: of the run, with kit compare's interval. Below 1 is faster."


def draw(request: PlotRequest) -> Picture:
    """Return the ratio of times of each member to the baseline of its group, a panel for each group.

    Raises:
        KitError: no group has two members with a number, or `request.baseline` is in none.
    """
    found, left_out = group_panels(request)
    ratios = [(panel, own) for panel in found if (own := round_ratios(panel.profile, panel.group))]
    if not ratios:
        kinds = "gain, which sets profiles side by side, or blocks" if len(request.profiles) > 1 else "blocks"
        raise PlotError(f"nothing to draw: no group has two cells with a number in one round; take --kind {kinds}")
    shown = ratios[:PANELS_MAX]
    own_looks = looks(shown_name(row.name, request) for panel, _ in shown for row in panel.group.rows)
    compared = {shown_name(one.name, request) for _, own in shown for one in own}
    columns = columns_of([panel for panel, _ in shown])
    figure, axes = panels(len(shown), columns, HEIGHT_IN)
    for own_axes, (panel, own) in zip(axes, shown, strict=True):
        _draw_group(own_axes, own, [own_looks[shown_name(one.name, request)] for one in own])
        own_axes.set_title(panel.title)
        own_axes.set_ylabel(f"{_compared(panel)} ÷ {shown_name(panel.group.baseline or '', request)}")
    for own_axes in axes[-columns:]:
        own_axes.set_xlabel("round")
    return framed(
        figure,
        request,
        title="Ratio of times in each round",
        looks={name: look for name, look in own_looks.items() if name in compared},
        small=[(FAINT if any(one.by_cycle for _, own in shown for one in own) else "") + CLEAR],
        left_out=[*left_out, *beyond(len(ratios))],
    )


def _compared(panel: GroupPanel) -> str:
    cells = [row.cell for row in panel.group.rows]
    if cells[0].task == "fit":
        return "fit"
    return "step" if len({cell.batch for cell in cells}) == 1 else "time per sample"


def _draw_group(axes: Axes, members: Sequence[RoundRatios], own_looks: Sequence[Look]) -> None:
    numbers = sorted({number for one in members for number in one.by_round})
    places = {number: place for place, number in enumerate(numbers, 1)}
    width = max(1.0, WHOLE_WIDTH * len(numbers))
    whole = len(numbers) + 0.5 + width / 2
    part = MEMBERS_WIDTH / len(members)
    axes.axhline(1.0, color=GREY, linewidth=1, linestyle="--", zorder=1)
    axes.axvline(len(numbers) + 0.5, color=GREY, linewidth=0.5)
    for at, (one, look) in enumerate(zip(members, own_looks, strict=True)):
        shift = (at - (len(members) - 1) / 2) * part
        for number, own in one.by_cycle.items():
            begin, step = places[number] + shift - CYCLES_WIDTH / 2 * part, CYCLES_WIDTH * part / max(1, len(own) - 1)
            axes.plot(
                [begin + cycle * step for cycle in range(len(own))],
                own,
                color=look.colour,
                marker="o",
                markeredgewidth=0,
                linestyle="none",
                markersize=CYCLE_PT,
                alpha=CYCLE_ALPHA,
            )
        axes.plot(
            [places[number] + shift for number in one.by_round],
            list(one.by_round.values()),
            color=look.colour,
            marker=look.marker,
            linestyle="none",
            markersize=marker_size(len(numbers)) - 0.5,  # smaller than the whole run's
            zorder=3,
        )
        low, high = one.versus.low, one.versus.high
        interval = None if low is None or high is None else (low, high)
        draw_line(axes, [Point(whole + shift * width, one.versus.ratio or 1.0, interval)], look)
    rounds = [ratio for one in members for ratio in one.by_round.values()]
    within = [ratio for one in members for own in one.by_cycle.values() for ratio in own]
    ends = [end for one in members for end in (one.versus.low, one.versus.high) if end]
    log_y([axes], [1.0, *rounds], [*within, *ends])
    ticked = numbers[:: -(-len(numbers) // TICKS_MAX)]
    axes.set_xticks([*(places[number] for number in ticked), whole], [*(str(number + 1) for number in ticked), "all"])
    axes.set_xlim(0.5, len(numbers) + 0.5 + width)
    axes.grid(visible=False, axis="x")
