"""Samples projected on fields: in each table every row against the baseline's, metric by metric, as one family.

                    table     row          side                   family
within a run        group     each cell    -                      each against the baseline, and the fastest two
runs                group     each cell    machine and label      against the baseline's side
platforms           group     each cell    machine and device     against the baseline's side
asked for           --split   --rows       --columns              as within a run, or against the first column

A field is one of the cell, of its parameters or of its run; any may be anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kit.compare.comparability import (
    NotComparableError,
    blocking,
    cell_mismatches,
    merged,
    nothing_common,
    refusal,
    run_mismatches,
)
from kit.compare.conclusions import broken_even, leaders_of, recommended, scaling_of
from kit.compare.contrast import Metric, trends
from kit.compare.family import Family, contrast
from kit.compare.metrics import METRICS, judged_name, run_level, value
from kit.compare.naming import axes_of, swept_axis, titles
from kit.compare.notes import by_notes, contention_notes, deduplicated, joules_notes, notes_within, spread_notes
from kit.compare.rows import Comparison, GroupRows, Mismatch, Missing, Note, PlatformBest, Row
from kit.compare.sample import Run, RunTimes, Sample, counted_marks, read_run, whole_key
from kit.compare.sides import (
    Side,
    are_platforms,
    each_once,
    on_platforms,
    order_of,
    platforms_of,
    sides_of,
    why_missing,
)
from kit.errors import KitError
from kit.profile.reason import reason
from kit.profile.schema import Profile
from kit.stats.estimate import RULE, RULE_OF_ALL_CYCLES, Estimate, judge

if TYPE_CHECKING:
    from kit.audit.finding import Finding

STEP, ENERGY, SCORE = (METRICS[name] for name in ("step_ns", "energy_per_sample_j", "fit_score"))
# With many runs, only these are read from each and its launches are dropped: what any format shows, or only the table.
OF_MANY_RUNS = tuple(name for name, metric in METRICS.items() if metric.runs is not None)
OF_A_TABLE = (
    *(name for name in OF_MANY_RUNS if METRICS[name].shown == "table" or METRICS[name].part == "fit"),
    *("launches", "is_disturbed", "contention_pct", "sustained_differs"),
)
# Notes on the cycles of a run, which count or not.
LEFT_OUT = ("cycles_left_out", "no_clean_round", "no_round_alone", "disturbed_cycles_count")


def compare_within(
    label: str,
    profile: Profile,
    *,
    baseline: str | None = None,
    findings: Sequence[Finding] = (),
    by: str = "step_ns",
    all_cycles: bool = False,
) -> Comparison:
    """Return every group of one profile with its verdicts: arguments as of `compare_cells` and `read_run`."""
    run = read_run(label, profile, by, all_cycles=all_cycles)
    return compare_cells(run, baseline=baseline, findings=findings)


def compare_cells(run: Run, *, baseline: str | None = None, findings: Sequence[Finding] = ()) -> Comparison:
    """Return every group of one run with its verdicts.

    Args:
        run: with its launches; a filter may have left cells out.
        baseline: name of a row, or key of a cell, that is the baseline where a group has it; null: the groups' own.
        findings: of the run's audit, gravest first.

    Raises:
        KitError: no group has such a cell.
    """
    metric, counted = METRICS[run.by], run.counted
    keys = run.samples.keys()
    names = {sample.name for sample in run.samples.values()}
    if baseline is not None and baseline not in names and baseline not in keys:
        raise KitError(f"no baseline {baseline!r} in {run.label}; choose from {', '.join(sorted(names))}")
    kept = [group for group in run.groups if keys & group.samples.keys()]
    heads = titles([[sample.cell for key, sample in group.samples.items() if key in keys] for group in kept])
    without_all_reduce = {variant.name for variant in run.profile.suite.variants if not variant.all_reduces}
    groups = []
    for group, title in zip(kept, heads, strict=True):
        # A filter leaves some of them out; the group's own baseline stays what steps are adjusted to.
        rows = {key: [sample] for key, sample in group.samples.items() if key in keys}
        wanted = [key for key, sample in group.samples.items() if baseline in (sample.name, key)]
        base = good_baseline([*wanted[:1], group.baseline, *rows], rows)
        marks = trends(metric, group.parts, group.samples)
        # The group's family: what each row is beside the baseline, which are fastest, and what steps come to.
        family = Family(metric, rows, base)
        made = family_rows(rows, {key: sample.name for key, sample in group.samples.items()}, base, family)
        steps = family if metric is STEP else Family(STEP, rows, base)
        samples = {key: listed[0] for key, listed in rows.items()}
        for row in made:
            sample = row.samples[0]
            row.marks += [
                reason("stalls", share_pct=finding.values["stalled_pct"])
                for finding in findings
                if (finding.code, finding.cell_key, whole_key(finding.group)) == ("stalls", sample.cell_key, group.key)
            ]
            row.marks += [marks[sample.cell_key]] if sample.cell_key in marks else []
            modes = next((modes for (_, key), modes in group.modes.items() if key == sample.cell_key), None)
            if modes is not None:
                row.marks.append(reason("two_modes", fast_ns=modes.step_ns[0], slow_ns=modes.step_ns[1]))
            if row.versus is not None:
                row.break_even = broken_even(sample, samples[base], steps)
                if metric is STEP:
                    row.scaling = scaling_of(sample.cell_key, base, samples, family, without_all_reduce)
        axis = swept_axis([row.cell for row in made], run.compared)
        if axis is None:
            made.sort(key=lambda row: row.judged or math.inf)
        else:
            made.sort(key=lambda row: row.cell.value(axis) or 0)
        cell_keys = {row.name: row.samples[0].cell_key for row in made}
        # One that averages nothing does not do the work.
        fastest_first = [row.name for row in made if row.has_number and row.cell.variant not in without_all_reduce]
        once: dict[tuple[str, str, str], Finding] = {}  # a baseline is measured in every part of its group
        for finding in findings:
            if whole_key(finding.group) == group.key:
                once.setdefault((finding.cell_key, finding.code, finding.about), finding)
        groups.append(
            GroupRows(
                key=group.key,
                title=title,
                baseline=samples[base].name,
                rows=made,
                leaders=leaders_of(fastest_first, family, cell_keys) if axis is None else None,
                recommendation=recommended(axis, made, family, cell_keys) if axis and metric is STEP else None,
                findings=list(once.values()),
            )
        )
    left_out = [note for note in run.notes if note.what.code in LEFT_OUT]
    return Comparison(
        kind="cells",
        groups=groups,
        headlines=[run.headline],
        notes=deduplicated([*notes_within(run.label, counted.profile, groups, run.by), *left_out]),
        by=run.by,
        rule=counted.rule,
    )


def good_baseline(wanted: Sequence[str], rows: Mapping[str, Sequence[Sample]]) -> str:
    """Return the first of some rows that gave a number; of a group without any, the first that it has."""
    present = [key for key in wanted if key in rows]
    return next((key for key in present if any(sample.good for sample in rows[key])), present[0])


def family_rows(rows: Mapping[str, list[Sample]], names: Mapping[str, str], base: str, family: Family) -> list[Row]:
    """Return a row for each key, judged as one family against the baseline; joules and scores beside it."""
    against = [(key, base) for key in rows if key != base]
    energies, scores = (Family(metric, rows, base, pairs=against) for metric in (ENERGY, SCORE))
    made = []
    for key, samples in rows.items():
        row = Row(
            name=names[key], member=names[key], samples=samples, is_baseline=key == base, metric=family.metric.name
        )
        row.marks = counted_marks(mark for sample in samples for mark in sample.marks)
        if key != base and row.has_number:
            row.versus, joules = family.versus(key, base), energies.versus(key, base)
            row.energy_versus = joules if joules.count else None
            if row.cell.task == "fit":
                difference = scores.versus(key, base)
                row.score_difference = difference if difference.count > 1 else None
        made.append(row)
    return made


def reduce_run(
    label: str,
    profile: Profile,
    by: str = "step_ns",
    *,
    details: bool = True,
    all_cycles: bool = False,
    names: Sequence[str] = OF_MANY_RUNS,
) -> Run:
    """Return a run; without `details` what a comparison needs of it, so that the profile can be dropped.

    `names`: of the metrics that are then kept.
    """
    run = read_run(label, profile, by, all_cycles=all_cycles)
    if details:
        return run
    for sample in run.samples.values():
        for name in (*names, judged_name(by, sample)):
            value(sample, name)
        sample.once("marks", list)
        run_level(METRICS[by], sample)
    run.drop_launches()
    return run


def compare_runs(
    runs: Iterable[Run],
    against: Iterable[Run] = (),
    *,
    baseline: str | None = None,
    force: bool = False,
    explain: bool = False,
    by: str = "step_ns",
    all_cycles: bool = False,
) -> Comparison:
    """Return each cell of later runs, or platforms, against the same cell of the baseline's.

    Args:
        runs: two and more, or one of several devices; with `against` the baseline's, one and more.
        against: the later runs, where they were given apart.
        baseline: label of the run whose side is the baseline, or name of a platform; null: the first.
        force: compare what the gate would keep apart.
        explain: return a comparison even where the gate keeps all apart: what differs is asked for.
        by: name of the metric that is compared; the runs were read for it.
        all_cycles: the runs were read so.

    Raises:
        KitError: no run or platform has that name, or several have.
        NotComparableError: no cell in common, or none that may be compared.
    """
    runs, against, repeated = each_once(runs, against)
    everyone = [*runs, *against]
    first_keys = {key for run in runs for key in run.samples}
    platforms = are_platforms(everyone) and not any(first_keys & run.samples.keys() for run in against)
    if platforms:
        runs, against = on_platforms(runs), on_platforms(against)
    elif len(everyone) < 2:  # noqa: PLR2004 - one and another
        raise NotComparableError(f"{everyone[0].label} was given more than once and is the only run; give another")
    base, later = platforms_of([*runs, *against], baseline) if platforms else sides_of(runs, against, baseline)
    base_keys = {key for run in base.runs for key in run.samples}
    differing = {
        (side.label, key): _side_mismatches(base, side, key)
        for side in later
        for key in {key: None for run in side.runs for key in run.samples if key in base_keys}
    }
    if not differing:
        cells = [[sample.cell for run in side.runs for sample in run.samples.values()] for side in (base, later[0])]
        raise nothing_common(base.label, cells[0], later[0].label, cells[1])
    if not (force or explain) and all(blocking(mismatches) for mismatches in differing.values()):
        raise refusal(blocking(next(iter(differing.values())))[0])
    orders = {side.label: order_of(base, side) for side in later if not platforms and base.like_hardware(side)}
    for side in later:
        if side.label in orders and orders[side.label].code == "clock_set_back":
            for run in side.runs:  # the wall clock does not order them
                run.times = RunTimes(None, None, None)
    groups = _side_groups(base, later, differing, METRICS[by], force=force, platforms=platforms)
    notes = [Note(what=reason("same_run", profiles=", ".join(repeated)))] if repeated else []
    unlike = [side.label for side in later if not base.like_hardware(side)]
    notes += [*spread_notes(groups, unlike), *joules_notes(groups), *contention_notes(groups)]
    notes += [Note(what=orders[side.label]) for side in later if side.label in orders]
    in_cells = merged(mismatch for mismatches in differing.values() for mismatch in mismatches)
    return Comparison(
        kind="platforms" if platforms else "runs",
        groups=groups,
        headlines=[side.headline for side in [base, *later]],
        mismatches=[*in_cells, *run_mismatches([(run.label, run.facts) for run in everyone])],
        notes=deduplicated([*by_notes(by), *notes, *(note for run in everyone for note in run.notes)]),
        by=by,
        rule=RULE_OF_ALL_CYCLES if all_cycles else RULE,
    )


def _side_mismatches(base: Side, side: Side, key: str) -> list[Mismatch]:
    alike = base.like_hardware(side)
    # Runs of one side ran on one machine, whatever the other's is.
    alike_runs = [[*base.runs, *side.runs]] if alike else [[*base.runs, *side.runs], base.runs, side.runs]
    mismatches = []
    for index, runs in enumerate(alike_runs):
        facts = [(run.label, run.samples[key].facts) for run in runs if key in run.samples]
        precision = base.of_cell(key)[0].cell.precision
        mismatches += cell_mismatches(facts, precision, like_hardware=alike or index > 0)
    return merged(mismatches)


def _side_groups(
    base: Side,
    later: Sequence[Side],
    differing: Mapping[tuple[str, str], list[Mismatch]],
    metric: Metric,
    *,
    force: bool,
    platforms: bool,
) -> list[GroupRows]:
    """Return the cells by the groups they were measured in, each cell's baseline before its later sides."""
    members: dict[str, dict[str, Sample]] = {}
    seen: set[str] = set()
    for sample in (sample for side in [base, *later] for run in side.runs for sample in run.samples.values()):
        if sample.key not in seen:
            members.setdefault(sample.group, {})[sample.key] = sample
            seen.add(sample.key)
    anywhere = {"device": ""} if platforms else {}
    heads = titles([[replace(sample.cell, **anywhere) for sample in cells.values()] for cells in members.values()])
    groups = []
    for (key, cells), title in zip(members.items(), heads, strict=True):
        group = GroupRows(key=key, title=title, baseline=base.label, rows=[])
        for cell_key, first in _in_order(cells, base, metric):
            for side in [base, *later]:
                if not (samples := side.of_cell(cell_key)):
                    if platforms:
                        why = why_missing(side.runs, first.cell)
                        group.missing.append(Missing(member=first.name, side=side.label, reason=why))
                    continue
                row = side_row(first.name, side.label, samples, metric, is_baseline=side is base)
                row.blocked = [] if side is base else blocking(differing.get((side.label, cell_key), []))
                group.rows.append(row)
        judge_sides(group.rows, metric, force=force)
        for row in group.rows:
            row.versus = row.versus if row.versus is not None and row.versus.count else None
        if platforms:
            group.best = _best([base, *later], cells, group.rows, metric)
        groups.append(group)
    # What only one platform has comes last.
    return sorted(groups, key=lambda group: platforms and len({row.side for row in group.rows}) == 1)


def side_row(member: str, side: str, samples: list[Sample], metric: Metric, *, is_baseline: bool) -> Row:
    """Return the row of a member on one side, not yet judged."""
    row = Row(name=f"{member} · {side}", member=member, side=side, samples=samples, metric=metric.name)
    row.is_baseline = is_baseline
    row.marks = counted_marks(mark for sample in samples for mark in sample.marks)
    return row


def judge_sides(rows: Sequence[Row], metric: Metric, *, force: bool) -> None:
    """Judge each row against that of its member on the baseline's side: one group is one family."""
    bases = {row.member: row.name for row in rows if row.is_baseline}
    judged = [row for row in rows if not row.is_baseline and row.member in bases and (force or not row.blocked)]
    pairs = [(row.name, bases[row.member]) for row in judged]
    family = Family(metric, {row.name: row.samples for row in rows}, "", pairs=pairs)
    for row, pair in zip(judged, pairs, strict=True):
        row.versus = family.versus(*pair)


def _best(
    sides: Sequence[Side],
    members: Mapping[str, Sample],
    rows: Sequence[Row],
    metric: Metric,
) -> list[PlatformBest]:
    """Return what each platform is at its best, against the baseline's, where nothing keeps these apart.

    They are judged as one family; each was chosen among so many members, on either side.
    """
    best, estimates = list[PlatformBest](), dict[str, Estimate]()
    base_row: Row | None = None
    names = {key: sample.name for key, sample in members.items()}
    for side in sides:
        timed = [(row.judged, row) for row in rows if row.side == side.label and row.judged]
        if not timed:
            continue
        row = min(timed, key=lambda item: item[0] or 0)[1]
        if side is sides[0]:
            base_row = row
        elif base_row is not None and not any(timed_row.blocked for _, timed_row in timed):
            estimate = contrast(metric, row.samples, base_row.samples)
            estimates |= {side.label: estimate} if estimate.count else {}
        fastest = [names[key] for key in _fastest(side.runs, row.samples[0].group, metric) if key in names]
        best.append(PlatformBest(platform=side.label, member=row.member, fastest=fastest))
    judged = dict(zip(estimates, judge(list(estimates.values()), chosen_among=len(members)), strict=True))
    return [replace(platform, versus=judged.get(platform.platform)) for platform in best]


def _fastest(runs: Sequence[Run], group: str, metric: Metric) -> list[str]:
    """Return the keys of the cells that are shown to be the fastest of a group, or tied with it, in any run.

    None where the runs have no such cell in common.
    """
    fastest: list[list[str]] = []  # in each run
    for run in runs:
        cells = {sample.cell_key: sample for sample in run.samples.values() if sample.group == group}
        if not cells:
            continue
        together, keys = next(iter(cells.values())).together, []
        if together is not None:
            times = {key: value(sample, judged_name(metric.name, sample)) for key, sample in cells.items()}
            ordered = sorted((key for key, time_ns in times.items() if time_ns), key=lambda key: times[key])
            rows = {key: [sample] for key, sample in together.samples.items()}
            family = Family(metric, rows, together.baseline)
            leaders = leaders_of(ordered, family, {key: key for key in ordered})
            keys = [] if leaders is None or leaders.modes else [cells[key].key for key in leaders.tied]
        fastest.append(keys)
    if not fastest or not set.intersection(*map(set, fastest)):
        return []
    return list(dict.fromkeys(key for keys in fastest for key in keys))


def _in_order(members: Mapping[str, Sample], base: Side, metric: Metric) -> list[tuple[str, Sample]]:
    """Return the points of a sweep in its order, other cells by the baseline's time, fastest first."""
    cells = [sample.cell for sample in members.values()]
    axis = swept_axis(cells, axes_of(cells))

    def order(item: tuple[str, Sample]) -> float:
        key, sample = item
        if axis is not None:
            return float(sample.cell.value(axis) or 0)
        times_ns = [value(run_cell, judged_name(metric.name, run_cell)) for run_cell in base.of_cell(key)]
        return min((time_ns for time_ns in times_ns if time_ns is not None), default=math.inf)

    return sorted(members.items(), key=order)
