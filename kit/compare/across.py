"""Several runs: those that alternate in time are paired with their neighbours, of others the session is the unit.

kit compare before.json after.json                   each cell of the second against the first's
kit compare before*.json --against after*.json       the runs of one identity are one side
kit compare cpu.json gpu.json                        what was asked on each platform, against the first
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from kit.compare.cell_numbers import judged_ns
from kit.compare.comparability import (
    NotComparableError,
    blocking,
    cell_mismatches,
    merged,
    nothing_common,
    refusal,
    run_mismatches,
)
from kit.compare.naming import axes_of, swept_axis, titles
from kit.compare.notes import by_notes, contention_notes, deduplicated, joules_notes, spread_notes
from kit.compare.platforms import are_platforms, fastest_of, on_platforms, why_missing
from kit.compare.rows import Comparison, GroupRows, Mismatch, Missing, Note, PlatformBest, Row
from kit.compare.runs import CellRun, Run
from kit.compare.sides import Side, each_once, headline, like_hardware, order_of, platforms_of, same_host, sides_of
from kit.profile.cell import Cell
from kit.profile.reason import reason
from kit.stats.rounds import By
from kit.stats.runs import RunLevel, over_runs
from kit.stats.verdict import RULE, RULE_OF_ALL_CYCLES, Versus, judge_differences

Differing = Mapping[tuple[str, str], list[Mismatch]]  # label of a later side, key of a cell -> from the baseline's


def compare_runs(
    runs: Iterable[Run],
    against: Iterable[Run] = (),
    *,
    baseline: str | None = None,
    force: bool = False,
    explain: bool = False,
    by: By = "step",
    all_cycles: bool = False,
) -> Comparison:
    """Return each cell of later runs, or platforms, against the same cell of the baseline's.

    Args:
        runs: two and more, or one of several devices; with `against` the baseline's, one and more.
        against: the later runs, where they were given apart.
        baseline: label of the run whose side is the baseline, or name of a platform; null: the first.
        force: compare what the gate would keep apart.
        explain: return a comparison even where the gate keeps all apart: what differs is asked for.
        by: what is compared; the runs are reduced by it.
        all_cycles: the runs were reduced so.

    Raises:
        KitError: no run or platform has that name, or several have.
        NotComparableError: no cell in common, or none that may be compared.
    """
    runs, against, repeated = each_once(runs, against)
    everyone = [*runs, *against]
    platforms = are_platforms(everyone) and not _have_common_cells(runs, against)
    if platforms:
        runs, against = on_platforms(runs), on_platforms(against)
    elif len(everyone) < 2:  # noqa: PLR2004 - one and another
        raise NotComparableError(f"{everyone[0].label} was given more than once and is the only run; give another")
    base, later = platforms_of([*runs, *against], baseline) if platforms else sides_of(runs, against, baseline)
    differing = {
        (side.label, key): _cell_mismatches(base, side, key)
        for side in later
        for key in {key: None for run in side.runs for key in run.cells if base.of_cell(key)}
    }
    if not differing:
        raise nothing_common(base.label, _cells(base), later[0].label, _cells(later[0]))
    if not (force or explain) and all(blocking(mismatches) for mismatches in differing.values()):
        raise refusal(blocking(next(iter(differing.values())))[0])
    orders = {side.label: order_of(base, side) for side in later if not platforms and like_hardware(base, side)}
    untimed = {label for label, order in orders.items() if order.code == "clock_set_back"}
    groups = _groups(base, later, differing, by, force=force, platforms=platforms, untimed=untimed)
    notes = [Note(what=reason("same_run", profiles=", ".join(repeated)))] if repeated else []
    unlike = [side.label for side in later if not like_hardware(base, side)]
    notes += [*spread_notes(groups, unlike), *joules_notes(groups), *contention_notes(groups)]
    notes += [Note(what=orders[side.label]) for side in later if side.label in orders]
    in_cells = merged(mismatch for mismatches in differing.values() for mismatch in mismatches)
    return Comparison(
        kind="platforms" if platforms else "runs",
        groups=groups,
        headlines=[headline(side) for side in [base, *later]],
        mismatches=[*in_cells, *run_mismatches([(run.label, run.facts) for run in everyone])],
        notes=deduplicated([*by_notes(by), *notes, *(note for run in everyone for note in run.notes)]),
        by=by,
        rule=RULE_OF_ALL_CYCLES if all_cycles else RULE,
    )


def _have_common_cells(runs: Iterable[Run], against: Iterable[Run]) -> bool:
    """Whether later runs were given apart, and have cells of the earlier ones' devices."""
    keys = {key for run in runs for key in run.cells}
    return any(key in keys for run in against for key in run.cells)


def _cells(side: Side) -> list[Cell]:
    return [cell_run.cell for run in side.runs for cell_run in run.cells.values()]


def _cell_mismatches(base: Side, side: Side, key: str) -> list[Mismatch]:
    precision = base.of_cell(key)[0].cell.precision
    alike = like_hardware(base, side)
    # Runs of one side ran on one machine, whatever the other's is.
    of_sides = [[*base.runs, *side.runs]] if alike else [[*base.runs, *side.runs], base.runs, side.runs]
    mismatches = []
    for place, runs in enumerate(of_sides):
        cells = [(run.label, run.cells[key].facts) for run in runs if key in run.cells]
        mismatches += cell_mismatches(cells, precision, like_hardware=alike or place > 0)
    return merged(mismatches)


def _groups(
    base: Side,
    later: Sequence[Side],
    differing: Differing,
    by: By,
    *,
    force: bool,
    platforms: bool,
    untimed: Collection[str],
) -> list[GroupRows]:
    """Return the cells by the groups they were measured in, each cell's baseline before its later sides.

    `untimed`: labels of sides whose runs' order is not known.
    """
    cells: dict[str, dict[str, CellRun]] = {}
    grouped: set[str] = set()
    for run in (run for side in [base, *later] for run in side.runs):
        for key, cell_run in run.cells.items():
            if key not in grouped:
                cells.setdefault(cell_run.group, {})[key] = cell_run
                grouped.add(key)
    anywhere = {"device": ""} if platforms else {}
    heads = titles(
        [[msgspec.structs.replace(member.cell, **anywhere) for member in of.values()] for of in cells.values()]
    )
    groups = []
    for (group, members), title in zip(cells.items(), heads, strict=True):
        rows, missing = [], []
        for key, cell_run in _in_order(members, base, by):
            for side in [base, *later]:
                if not side.of_cell(key):
                    if platforms:
                        why = why_missing(side.runs, cell_run.cell)
                        missing.append(Missing(member=cell_run.name, side=side.label, reason=why))
                elif side is base:
                    rows.append(base.row(key, cell_run.name, is_baseline=True))
                else:
                    blocked = blocking(differing.get((side.label, key), []))
                    is_timed = side.label not in untimed
                    versus = None if blocked and not force else _versus(base, side, key, key, by, is_timed=is_timed)
                    rows.append(msgspec.structs.replace(side.row(key, cell_run.name), blocked=blocked, versus=versus))
        best = _best([base, *later], group, members, rows, by) if platforms else []
        groups.append(
            GroupRows(key=group, title=title, baseline=base.label, rows=_adjusted(rows), best=best, missing=missing)
        )
    # What only one platform has comes last.
    return sorted(groups, key=lambda group: platforms and len({row.side for row in group.rows}) == 1)


def _best(
    sides: Sequence[Side], group: str, members: Mapping[str, CellRun], rows: Sequence[Row], by: By
) -> list[PlatformBest]:
    """Return what each platform is at its best, against the baseline's, where nothing keeps these apart."""
    names, keys = {key: member.name for key, member in members.items()}, {m.name: key for key, m in members.items()}
    best: list[PlatformBest] = []
    base_key = None
    for side in sides:
        timed = [(time_ns, row) for row in rows if row.side == side.label and (time_ns := judged_ns(row.numbers, by))]
        if not timed:
            continue
        _, row = min(timed, key=lambda item: item[0])
        versus = None
        if side is sides[0]:
            base_key = keys[row.member]
        elif base_key is not None and not any(row.blocked for _, row in timed):
            versus = _versus(sides[0], side, base_key, keys[row.member], by)
        fastest = [names[key] for key in fastest_of(side.runs, group) if key in names]
        best.append(PlatformBest(platform=side.label, member=row.member, fastest=fastest, versus=versus))
    return _with_verdicts(best, len(members))


def _with_verdicts(best: Sequence[PlatformBest], members: int) -> list[PlatformBest]:
    """Return them judged as one family; each was chosen among so many members, on either side."""
    judged = iter(_family([each.versus for each in best if each.versus is not None], members))
    return [each if each.versus is None else msgspec.structs.replace(each, versus=next(judged)) for each in best]


def _in_order(members: Mapping[str, CellRun], base: Side, by: By) -> list[tuple[str, CellRun]]:
    """Return the points of a sweep in its order, other cells by the baseline's time, fastest first."""
    cells = [member.cell for member in members.values()]
    axis = swept_axis(cells, axes_of(cells))

    def place(item: tuple[str, CellRun]) -> float:
        key, member = item
        if axis is not None:
            return float(member.cell.value(axis) or 0)
        times_ns = [time_ns for run in base.of_cell(key) if (time_ns := judged_ns(run.numbers, by)) is not None]
        return min(times_ns, default=math.inf)

    return sorted(members.items(), key=place)


def _versus(base: Side, side: Side, base_key: str, key: str, by: By, *, is_timed: bool = True) -> Versus | None:
    """Return what the runs say of a side's cell against the baseline's, p not yet adjusted; null without a number."""
    later_levels, base_levels = (
        [
            level
            for run in of.runs
            if of_key in run.cells and (level := _level(run, of_key, by, is_timed=is_timed)) is not None
        ]
        for of, of_key in ((side, key), (base, base_key))
    )
    if not later_levels or not base_levels:
        return None
    alike = {"same_hardware": like_hardware(base, side), "same_host": same_host(base, side)}
    versus = over_runs(later_levels, base_levels, **alike)
    keys = ((side, key), (base, base_key))
    cells = [run.cells[cell_key] for judged, cell_key in keys for run in judged.runs if cell_key in run.cells]
    if not any(cell.numbers.is_disturbed for cell in cells):
        return versus
    # Blocks of one run meet others together; two runs do not, and without a clean cycle nothing says by how much.
    contention_pct = max(cell.numbers.contention_pct or 0.0 for cell in cells)
    return msgspec.structs.replace(versus, verdict="unresolved", contention_pct=contention_pct)


def _level(run: Run, key: str, by: By, *, is_timed: bool) -> RunLevel | None:
    numbers, times = run.cells[key].numbers, run.times
    time_ns = judged_ns(numbers, by)
    if not time_ns:
        return None
    level = RunLevel(math.log(time_ns), numbers.level_se, numbers.rounds, (numbers.contention_pct or 0.0) / 100)
    return level._replace(begin_s=times.begin_s, end_s=times.end_s) if is_timed else level


def _adjusted(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with verdicts on p values adjusted within the group: one group is one family."""
    judged = iter(_family([row.versus for row in rows if row.versus is not None]))
    return [row if row.versus is None else msgspec.structs.replace(row, versus=next(judged)) for row in rows]


def _family(known: Sequence[Versus], chosen_among: int = 1) -> list[Versus]:
    """Return them judged as one family; each was chosen among so many, on either side."""
    differences = [None if versus.contention_pct is not None else versus.difference for versus in known]
    tested = [difference for difference in differences if difference is not None]
    judged = iter(judge_differences(tested, chosen_among=chosen_among))
    return [
        versus
        if difference is None
        else msgspec.structs.replace(next(judged), unit=versus.unit, is_spread_assumed=versus.is_spread_assumed)
        for versus, difference in zip(known, differences, strict=True)
    ]
