"""Several profiles: runs at different times cannot be paired, so the run is the unit.

kit compare before.json after.json                   each cell of the second against the first's
kit compare before*.json --against after*.json       the runs of one identity are one side; three say how they spread
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kit.compare.cell_numbers import judged_ns
from kit.compare.comparability import NotComparableError, blocking, cell_mismatches, merged, run_mismatches
from kit.compare.naming import axes_of, swept_axis, titles
from kit.compare.notes import by_notes, deduplicated
from kit.compare.rows import Comparison, GroupRows, Mismatch, Note, Row
from kit.compare.runs import CellRun, Run, row_of
from kit.errors import KitError
from kit.profile.reason import reason
from kit.stats.rounds import By
from kit.stats.runs import RUNS_FOR_SPREAD, over_runs
from kit.stats.verdict import ALPHA, SMALLEST_DIFFERENCE, Versus, adjusted_p, verdict_of


class Side(NamedTuple):
    """Runs of one identity and one given label."""

    label: str
    runs: list[Run]

    def of_cell(self, key: str) -> list[CellRun]:
        """Return the cell of every run that has it."""
        return [run.cells[key] for run in self.runs if key in run.cells]

    def row(self, key: str, name: str, *, is_baseline: bool = False) -> Row:
        """Return the row of a cell that some of the runs have."""
        labels = [run.label for run in self.runs]
        return row_of(f"{name} · {self.label}", self.of_cell(key), labels, is_baseline=is_baseline)


Differing = Mapping[tuple[str, str], list[Mismatch]]  # label of a later side, key of a cell -> from the baseline's


def compare_runs(
    runs: Iterable[Run],
    against: Iterable[Run] = (),
    *,
    baseline: str | None = None,
    force: bool = False,
    by: By = "step",
) -> Comparison:
    """Return each cell of later runs against the same cell of the baseline's runs.

    Args:
        runs: two and more; with `against` the baseline's, one and more.
        against: the later runs, where they were given apart.
        baseline: label of the run whose side is the baseline; null: the first.
        force: compare what the gate would keep apart.
        by: what is compared; the runs are reduced by it.

    Raises:
        KitError: no run has that label.
        NotComparableError: no cell in common, or none that may be compared.
    """
    runs, against, repeated = _each_once(runs, against)
    everyone = [*runs, *against]
    if len(everyone) < 2:  # noqa: PLR2004 - one and another
        raise NotComparableError(f"{everyone[0].label} is the only run: it was given more than once; give another")
    base, later = _sides_of(runs, against, baseline)
    differing = {
        (side.label, key): _cell_mismatches(base, side, key)
        for side in later
        for key in {key: None for run in side.runs for key in run.cells if base.of_cell(key)}
    }
    if not differing:
        has = "; ".join(f"{side.label} has {next(iter(side.runs[0].cells), 'none')}" for side in (base, later[0]))
        raise NotComparableError(f"no cell is in both: {has}; compare runs of the same suite")
    if not force and all(blocking(mismatches) for mismatches in differing.values()):
        raise _refusal(blocking(next(iter(differing.values())))[0])
    groups = _groups(base, later, differing, by, force=force)
    notes = [Note(what=reason("same_run", profiles=", ".join(repeated)))] if repeated else []
    if any(row.versus is not None and row.versus.low is None for group in groups for row in group.rows):
        notes.append(Note(what=reason("runs_needed", needed=RUNS_FOR_SPREAD)))
    elif any(_is_apart(base, side) for side in later if _like_hardware(base, side)):
        notes.append(Note(what=reason("runs_apart")))
    in_cells = merged(mismatch for mismatches in differing.values() for mismatch in mismatches)
    return Comparison(
        kind="runs",
        groups=groups,
        headlines=[
            msgspec.structs.replace(side.runs[0].headline, label=side.label, profiles=len(side.runs))
            for side in [base, *later]
        ],
        mismatches=[*in_cells, *run_mismatches([(run.label, run.facts) for run in everyone])],
        notes=deduplicated([*by_notes(by), *notes, *(note for run in everyone for note in run.notes)]),
        by=by,
    )


def _each_once(runs: Iterable[Run], against: Iterable[Run]) -> tuple[list[Run], list[Run], list[str]]:
    """Return both lists with each run once, and the labels of those left out: a copy is no second observation."""
    seen: set[str] = set()
    kept: tuple[list[Run], list[Run]] = ([], [])
    repeated = []
    for given, run in [*((0, run) for run in runs), *((1, run) for run in against)]:
        if run.id in seen:
            repeated.append(run.label)
        else:
            kept[given].append(run)
        seen.add(run.id)
    return *kept, repeated


def _cell_mismatches(base: Side, side: Side, key: str) -> list[Mismatch]:
    cells = [(run.label, run.cells[key].facts) for run in [*base.runs, *side.runs] if key in run.cells]
    precision = next(run.cells[key].cell.precision for run in base.runs if key in run.cells)
    return cell_mismatches(cells, precision, like_hardware=_like_hardware(base, side))


def _like_hardware(base: Side, side: Side) -> bool:
    return base.runs[0].hardware == side.runs[0].hardware


def _is_apart(base: Side, side: Side) -> bool:
    """Whether all runs of one side came before all of the other's: then the machine's drift looks like a difference."""
    first, second = ([run.headline.created for run in half.runs] for half in (base, side))
    return max(first) < min(second) or max(second) < min(first)


def _refusal(mismatch: Mismatch) -> NotComparableError:
    (base_value, others), (value, labels) = mismatch.values[0], mismatch.values[-1]
    return NotComparableError(
        f"no common cell can be compared: {mismatch.kind.replace('_', ' ')} {value} in {labels[0]}, "
        f"{base_value} in {others[0]}; measure both alike, or compare all the same with --force"
    )


def _groups(base: Side, later: Sequence[Side], differing: Differing, by: By, *, force: bool) -> list[GroupRows]:
    """Return the cells by the groups they were measured in, each cell's baseline before its later sides."""
    cells: dict[str, dict[str, CellRun]] = {}
    for run in (run for side in [base, *later] for run in side.runs):
        for key, cell_run in run.cells.items():
            cells.setdefault(cell_run.group, {}).setdefault(key, cell_run)
    heads = titles([[member.cell for member in members.values()] for members in cells.values()])
    groups = []
    for (group, members), title in zip(cells.items(), heads, strict=True):
        rows = []
        for key, cell_run in _in_order(members):
            if base.of_cell(key):
                rows.append(base.row(key, cell_run.name, is_baseline=True))
            for side in (side for side in later if side.of_cell(key)):
                blocked = blocking(differing.get((side.label, key), []))
                versus = None if blocked and not force else _versus(base, side, key, by)
                rows.append(msgspec.structs.replace(side.row(key, cell_run.name), blocked=blocked, versus=versus))
        groups.append(GroupRows(key=group, title=title, baseline=base.label, rows=_adjusted(rows)))
    return groups


def _in_order(members: Mapping[str, CellRun]) -> list[tuple[str, CellRun]]:
    """Return the points of a sweep in its order, whichever run and part they are of; other cells as they came."""
    cells = [member.cell for member in members.values()]
    axis = swept_axis(cells, axes_of(cells))
    return sorted(members.items(), key=lambda item: 0 if axis is None else item[1].cell.value(axis) or 0)


def _versus(base: Side, side: Side, key: str, by: By) -> Versus | None:
    """Return what the runs of two sides say of a cell, p not yet adjusted; null where either has no number."""
    later_logs, base_logs = (
        [math.log(time_ns) for cell_run in runs_of.of_cell(key) if (time_ns := judged_ns(cell_run.numbers, by))]
        for runs_of in (side, base)
    )
    if not later_logs or not base_logs:
        return None
    return over_runs(later_logs, base_logs, same_hardware=_like_hardware(base, side))


def _adjusted(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with verdicts on p values adjusted within the group: one group is one family."""
    tested = [row.versus.p_adjusted for row in rows if row.versus is not None and row.versus.p_adjusted is not None]
    adjusted = iter(adjusted_p(tested))
    judged = []
    for row in rows:
        versus = row.versus
        if versus is not None and versus.p_adjusted is not None and versus.difference is not None:
            p = next(adjusted)
            verdict = verdict_of(versus.difference, p <= ALPHA, SMALLEST_DIFFERENCE)
            versus = msgspec.structs.replace(versus, p_adjusted=p, verdict=verdict, comparisons=len(tested))
        judged.append(msgspec.structs.replace(row, versus=versus))
    return judged


def _sides_of(runs: Sequence[Run], against: Sequence[Run], baseline: str | None) -> tuple[Side, list[Side]]:
    """Return the baseline's side and the later ones, each the runs of one identity and one given label.

    The baseline is the side of the first run, or of the one that `baseline` names. Where all runs are alike in both
    and none was given apart, it is that run alone.
    """
    everyone = [*runs, *against]
    first = next((run for run in everyone if baseline in (None, run.label, run.given_label)), None)
    if first is None:
        raise KitError(f"no profile {baseline!r}; choose from {', '.join(run.label for run in everyone)}")
    alike = [*_alike(runs), *_alike(against)]
    if len(alike) == 1:
        alike = [[first], *_alike([run for run in everyone if run is not first])]
    sides = _named(alike)
    base = next(side for side in sides if any(run is first for run in side.runs))
    return base, [side for side in sides if side is not base]


def _alike(runs: Sequence[Run]) -> list[list[Run]]:
    sides: dict[tuple[bytes, str], list[Run]] = {}
    for run in runs:
        sides.setdefault((run.identity, run.given_label), []).append(run)
    return list(sides.values())


def _named(alike: Sequence[list[Run]]) -> list[Side]:
    """Return the sides by their given labels; where there is none, or two have it, by their files."""
    given = [runs[0].given_label for runs in alike]
    sides = []
    for label, runs in zip(given, alike, strict=True):
        files = runs[0].label + (f" and {len(runs) - 1} more" if len(runs) > 1 else "")
        sides.append(Side(files if not label else label if given.count(label) == 1 else f"{label} ({files})", runs))
    return sides
