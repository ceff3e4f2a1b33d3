"""A panel for each group of the profiles: `rounds`, which a verdict is based on, or `blocks`, the machine's drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from msgspec.structs import replace
from numpy.typing import NDArray

from kit.compare.clean_cycles import CountedCycles, RoundCycles, count_cycles
from kit.compare.launch_arrays import block_arrays
from kit.compare.rows import GroupRows
from kit.compare.runs import whole_key
from kit.compare.within import RoundRatios, compare_within, round_ratios
from kit.errors import KitError
from kit.profile.schema import Profile
from kit.report.plain import one_line
from kit.report.plot import picture
from kit.report.plot.picture import GREY, Look, Picture, PlotRequest, Point
from kit.report.quantity import counted
from kit.stats.verdict import OTHERS_MOST

HEIGHT_IN = 1.9
TITLE_CHARS = 44
LABEL_CHARS = 16  # of that, where several profiles are shown
NARROW_ROWS_MAX = 6  # a group of more rows than these takes the whole width
PANELS_MAX = 40  # of a page, and of what a canvas can be high: the rest is named
BLOCK_TICKS_MAX, ROUND_TICKS_MAX = 6, 8  # more overlap in half a page's width
GAP = 0.15  # of `blocks` between two rounds, as a share of a round
MEMBERS_WIDTH, CYCLES_WIDTH = 0.8, 0.7  # of a round's width, and of a member's part of that
WHOLE_WIDTH = 0.08  # of the whole run, as a share of all rounds; it is no narrower than one round

FAINT = "Faint: cycles. "
CLEAR = "Clear: rounds. All: the whole run, with the interval of kit compare. Below 1 is faster."
SHADED = "Alternating shades: rounds, without the time between them. Ticks show when each round began."
AT_END = " Points at an end of the axis are beyond it."
NONE_COUNTS = " If no round counts, the run's ratio is of all rounds."

Floats = NDArray[np.float64]


class Panel(NamedTuple):
    """One group of one profile."""

    title: str
    group: GroupRows  # rows in the profile's order, with names as people write them
    members: Sequence[Any]  # what is drawn, each with a `name`: RoundRatios or Timed
    rounds: Sequence[RoundCycles]  # that ran


class Timed(NamedTuple):
    """The blocks of one launch."""

    name: str  # of its row
    round: tuple[str, int]
    begin_s: Floats  # of each block, since the first block of the profile
    end_s: Floats
    step_ns: Floats
    hollow: Sequence[bool]  # whether each block is of a cycle, or a round, that does not count


def draw(request: PlotRequest) -> Picture:
    """Return `rounds` or `blocks`; KitError where no group has what is drawn, or `request.baseline` is not there."""
    shown, left_out = _panels(request)
    if request.kind == "blocks":
        why = f"{left_out[0] if left_out else 'no group has blocks'}; measure again"
        xlabel, title, note = "time since the first block (s)", "Step time of each block over time", SHADED
    else:
        kinds = "gain, which compares profiles, or blocks" if len(request.profiles) > 1 else "blocks"
        why = f"no group has two cells with a number in one round; use --kind {kinds}"
        has_cycles = any(member.by_cycle for panel in shown for member in panel.members)
        xlabel, title, note = "round", "Ratio of times in each round", (FAINT if has_cycles else "") + CLEAR
    if not shown:
        raise KitError(f"nothing to draw: {why}")
    looks = picture.looks_of(row.name for panel in shown for row in panel.group.rows)
    columns = 1 if any(len(panel.group.rows) > NARROW_ROWS_MAX for panel in shown) else 2
    figure, axes = picture.panels(len(shown), columns, HEIGHT_IN, xlabel)
    for panel_axes, panel in zip(axes, shown, strict=True):
        panel_axes.set_title(panel.title)
        panel_axes.grid(visible=False, axis="x")
        (_draw_blocks if request.kind == "blocks" else _draw_rounds)(panel_axes, panel, looks)
    drawn = {member.name for panel in shown for member in panel.members}
    looks = {name: look for name, look in looks.items() if name in drawn}
    is_moved = any([picture.moved_to_ends(panel_axes) for panel_axes in axes])  # noqa: C419 - of each
    return Picture(figure, title, looks, [note, *_hollow_notes(shown, request.kind, is_moved=is_moved)], left_out)


def _hollow_notes(shown: Sequence[Panel], kind: str, *, is_moved: bool) -> list[str]:
    """Return how many cycles of these groups do not count; nothing where all do."""
    ran = sum(of_round.ran for panel in shown for of_round in panel.rounds)
    hollow = ran - sum(of_round.clean for panel in shown for of_round in panel.rounds if of_round.counts)
    if not hollow:
        return []
    why = f"as other programs took more than {100 * OTHERS_MOST:.0f} % of the CPUs"
    words = f"Hollow: {hollow} of {counted(ran, 'cycle')} do not count, {why}."
    if kind == "rounds" and not all(any(of_round.counts for of_round in panel.rounds) for panel in shown):
        words += NONE_COUNTS
    return [words + AT_END if is_moved else words]


def _panels(request: PlotRequest) -> tuple[list[Panel], list[str]]:
    """Return the groups of all profiles that have members to draw, and a line for everything that is not drawn."""
    filled, left_out = [], []
    for label, profile in request.profiles:
        prefix = f"{picture.cut(label, LABEL_CHARS)} · " if len(request.profiles) > 1 else ""
        places = {result.cell.key: place for place, result in enumerate(profile.cells)}
        cycles = count_cycles(profile)
        compared = compare_within(label, profile, baseline=request.baseline)
        for group in compared.groups:
            # A table has the fastest first; side by side, a member has its place and its look in all panels.
            rows = sorted(group.rows, key=lambda row: places[row.cell.key])
            left_out += [
                picture.no_number(f"{prefix}{row.cell.key}", row.failure) for row in rows if not row.numbers.step_ns
            ]
            rows = [replace(row, name=one_line(request.titles.get(row.name, row.name))) for row in rows]
            named = replace(group, rows=rows, baseline=next((row.name for row in rows if row.is_baseline), ""))
            members = _timed(profile, cycles, named) if request.kind == "blocks" else round_ratios(profile, named)
            parts = [of_part for key, of_part in cycles.rounds.items() if whole_key(key) == group.key]
            rounds = [of_round for of_part in parts for of_round in of_part.values()]
            if members:
                filled.append(Panel(picture.cut(prefix + " · ".join(group.title), TITLE_CHARS), named, members, rounds))
    if len(filled) > PANELS_MAX:
        left_out.append(f"{counted(len(filled) - PANELS_MAX, 'group')} beyond the first {PANELS_MAX}")
    return filled[:PANELS_MAX], left_out


def _timed(profile: Profile, cycles: CountedCycles, group: GroupRows) -> list[Timed]:
    every = [launch.blocks for result in profile.cells for launch in result.launches]
    first_ns = min((begin_ns for blocks in every for begin_ns in blocks.begin_ns), default=0)
    launches = {
        result.key: list(zip(result.launches, of_clean.launches, strict=True))
        for result, of_clean in zip(profile.cells, cycles.profile.cells, strict=True)
    }
    timed = []
    for row in group.rows:
        for launch, clean in launches.get(row.cell.key, []):
            if not launch.gave_number:
                continue
            counting = set() if cycles.is_disturbed(launch.group) else set(clean.blocks.cycle)
            hollow = [cycle not in counting for cycle in launch.blocks.cycle]
            begin_s = np.subtract(launch.blocks.begin_ns, first_ns) / 1e9
            end_s, steps_ns = begin_s + np.divide(launch.blocks.span_ns, 1e9), block_arrays(launch).times_ns("step")
            timed.append(Timed(row.name, (launch.group, launch.round), begin_s, end_s, steps_ns, hollow))
    return sorted(timed, key=lambda member: member.begin_s[0])


def _draw_blocks(axes: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    """Draw the step of every block over time; the time between rounds, in which members start, is cut out."""
    rounds: dict[tuple[str, int], list[Timed]] = {}
    for member in panel.members:
        rounds.setdefault(member.round, []).append(member)
    steps_ns = np.concatenate([member.step_ns for member in panel.members]).tolist()
    scale, unit = picture.time_unit(steps_ns)
    at_s, ticks = 0.0, []
    for place, members in enumerate(rounds.values()):
        begin_s = members[0].begin_s[0]
        length_s = max(member.end_s.max() for member in members) - begin_s
        if place % 2:
            axes.axvspan(at_s - GAP / 2 * length_s, at_s + (1 + GAP / 2) * length_s, color=picture.BAND, lw=0)
        for member in members:
            style = looks[member.name] | {"linewidth": 0.6, "markersize": picture.marker_size(len(rounds)) / 2}
            picture.draw_markers(axes, member.begin_s - begin_s + at_s, member.step_ns / scale, member.hollow, **style)
        ticks.append((at_s, f"{round(begin_s):,}"))
        at_s += (1 + GAP) * length_s
    picture.set_log(axes, "y", [step_ns / scale for step_ns in steps_ns])
    axes.set_xticks(*zip(*ticks[:: -(-len(ticks) // BLOCK_TICKS_MAX)], strict=True))
    axes.set_ylabel(f"step ({unit})")


def _draw_rounds(axes: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    """Draw each member's ratio to the baseline cycle by cycle, round by round and of the whole run."""
    members: list[RoundRatios] = list(panel.members)
    numbers = sorted({number for member in members for number in member.by_round})
    last = len(numbers) + 0.5
    width, part = max(1.0, WHOLE_WIDTH * len(numbers)), MEMBERS_WIDTH / len(members)
    size = picture.marker_size(len(numbers)) - 0.5  # smaller than the whole run's
    axes.axhline(1.0, color=GREY, linewidth=1, linestyle="--", zorder=1)
    axes.axvline(last, color=GREY, linewidth=0.5)
    values, outliers = [1.0], list[float]()
    for place, (name, versus, by_round, by_cycle, counting) in enumerate(members):
        look, shift = looks[name], (place - (len(members) - 1) / 2) * part
        at = {number: begin + shift for begin, number in enumerate(numbers, 1)}
        style = {"color": look["color"], "linestyle": "none"}
        faint = style | {"marker": "o", "markeredgewidth": 0, "markersize": 1.5, "alpha": 0.45}
        for number, ratios in by_cycle.items():
            reach = CYCLES_WIDTH / 2 * part
            spread = np.linspace(at[number] - reach, at[number] + reach, len(ratios))
            hollow = [not counts for counts in counting.get(number, [False] * len(ratios))]
            picture.draw_markers(axes, spread, ratios, hollow, **faint)
            for ratio, is_outlier in zip(ratios, hollow, strict=True):
                (outliers if is_outlier and counting else values).append(ratio)
        x, y = [at[number] for number in by_round], list(by_round.values())
        hollow = [number not in counting for number in by_round]
        picture.draw_markers(axes, x, y, hollow, **style, marker=look["marker"], markersize=size, zorder=3)
        interval = () if versus.low is None or versus.high is None else (versus.low, versus.high)
        whole = Point(last + (0.5 + shift) * width, versus.ratio or 1.0, interval, hollow=not counting)
        picture.draw_points(axes, [whole], look)
        values += [whole.y, *interval]
        for ratio, is_outlier in zip(y, hollow, strict=True):
            (outliers if is_outlier and counting else values).append(ratio)
    picture.set_log(axes, "y", values, outliers)
    ticks = [(place, str(number + 1)) for place, number in enumerate(numbers, 1)]
    axes.set_xticks(*zip(*ticks[:: -(-len(ticks) // ROUND_TICKS_MAX)], (last + width / 2, "all"), strict=True))
    axes.set_xlim(0.5, last + width)
    cells = [row.cell for row in panel.group.rows]
    what = "step" if len({cell.batch for cell in cells}) == 1 else "time per sample"
    axes.set_ylabel(f"{'fit' if cells[0].task == 'fit' else what} ÷ {panel.group.baseline}")
