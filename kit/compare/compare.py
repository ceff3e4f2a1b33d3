"""Samples projected on fields: in each table every row against the baseline's, metric by metric, as one family.

                    table       row             side of a row          family
    cells of a run  its groups  each cell       -                      each against the baseline, and the fastest two
    runs            its groups  each cell       machine and label      against the baseline's side
    platforms       its groups  what was asked  machine and device     against the baseline's side
    named axes      --split     --rows          --columns              as of cells, or as of runs

One function, `compare`, makes all of them: `TableAxes` says which fields these are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec.structs import replace

from kit.compare.axes import CELL, GROUP, SIDE, Key, TableAxes, completed, field, project, words
from kit.compare.comparability import (
    NotComparableError,
    Programs,
    apart_in_losses,
    apart_in_threads,
    blocking,
    cell_mismatches,
    is_bound,
    merged,
    nothing_common,
    refusal,
    run_mismatches,
)
from kit.compare.metrics import METRICS, details, judged_name, read_metrics, untimed_level, value, value_of_runs
from kit.compare.naming import axes_of, name_of, swept_axis, titles
from kit.compare.notes import ON_CYCLES, by_notes, deduplicated, notes_between, notes_within, read_run
from kit.compare.ratios import Metric, trends
from kit.compare.rows import OTHER_LOSSES, SAME_CODE, Comparison, GroupRows, Mismatch, Missing, Note, Row
from kit.compare.runs import CellGroup, Run, Sample, counted_marks, whole_key
from kit.compare.same_code import blocked_by_code, loaded
from kit.compare.sides import Side, each_once, orders_of, sides_beside, why_missing
from kit.compare.verdicts import Family, best_of_platforms, broken_even, leaders_of, recommended, scaling_of
from kit.errors import KitError
from kit.nearest import choices
from kit.profile.cell import OWN
from kit.profile.fields import Reason, reason
from kit.profile.schema import Profile
from kit.workloads.device_operations import is_operation

if TYPE_CHECKING:
    from kit.audit.finding import Finding

STEP, ENERGY, SCORE = (METRICS[name] for name in ("step_ns", "energy_per_sample_j", "fit_score"))
# What the table of one run shows, and what is said beside it: all but the shares of ceilings, for which the catalog of
# networks has to be imported, and that takes a tenth of a second. The rate of an operation needs no catalog.
WITHOUT_REACH = tuple(name for name, metric in METRICS.items() if metric.part != "reach")
RATE = ("reach_rate", "reach_unit")
# With many runs, only these are read from each and its launches are dropped: what any format shows, or only the table,
# which does not show marks.
OF_MANY_RUNS = tuple(name for name, metric in METRICS.items() if metric.runs is not None)
OF_A_TABLE = (
    *(name for name in OF_MANY_RUNS if METRICS[name].shown == "table" or METRICS[name].part == "fit"),
    *("is_disturbed", "contention_pct", "sustained_differs", "sustained_change_pct"),
)
OF_CELLS, OF_SIDES = TableAxes([GROUP], [CELL]), TableAxes([GROUP], [CELL], [SIDE])
# Findings that a row is marked with, in their own words.
CHANGES = ("step_grows", "step_shrinks")
# A title begins with these.
HEAD = ("workload", "task")


def read_reduced(
    label: str, profile: Profile, by: str = "", *, all_cycles: bool = False, names: Sequence[str] = OF_MANY_RUNS
) -> Run:
    """Return what a comparison needs of a run, with these metrics alone: its profile can be dropped."""
    run = read_run(label, profile, by, all_cycles=all_cycles)
    metric = METRICS[run.by]
    read_metrics(run, [*names, *([metric.mark] if metric.mark else [])])
    for sample in run.samples.values():
        value(sample, judged_name(run.by, sample))
        loaded(sample)
        untimed_level(metric, sample)
    run.drop_launches(has_marks=names != OF_A_TABLE)
    return run


class Layout(NamedTuple):
    """What is compared with what."""

    kind: Literal["cells", "runs", "platforms"]
    axes: TableAxes
    samples: list[Sample]
    sides: list[Side]  # the baseline's first; empty: columns are fields, or there are none
    baseline: str | None  # name of a row or a column that is chosen
    names: Sequence[str] | None = None  # of the metrics that rows are to have; null: all


def compare(
    runs: Iterable[Run],
    against: Iterable[Run] = (),
    *,
    axes: TableAxes | None = None,
    baseline: str | None = None,
    force: bool = False,
    explain: bool = False,
    findings: Sequence[Finding] = (),
    names: Sequence[str] | None = None,
) -> Comparison:
    """Return the tables of some runs, with a verdict on each row.

    Args:
        runs: one or more, read for one metric; with `against` the baseline's.
        against: the later runs, where they are given apart.
        axes: that a user names, or OF_CELLS; null: cells of one run, but several runs and devices by sides.
        baseline: name of a row, a side, a run or a platform; null: the groups' own, or the first.
        force: compare what the gate would keep apart.
        explain: return a comparison even where the gate keeps all apart: what differs is asked for.
        findings: of a single run's audit, gravest first.
        names: of the metrics that rows are to have, with what verdicts need; None: all, and what was counted and
            sampled.

    Raises:
        KitError: nothing has an axis or a name that was asked for.
        NotComparableError: no cell is on two sides, or none of them may be compared.
    """
    runs, against, repeated = each_once(runs, against)
    everyone = [*runs, *against]
    layout = _layout(runs, against, axes, baseline)._replace(names=names)
    if not layout.sides and repeated:
        raise NotComparableError(f"{everyone[0].label} was given more than once and is the only run; give another")
    orders = orders_of(layout.sides) if layout.kind == "runs" and layout.sides else []
    metric, groups, mismatches = METRICS[everyone[0].by], list[GroupRows](), list[Mismatch]()
    bests = list[tuple[GroupRows, dict[str, list[Sample]]]]()
    for members, title in _tables(layout):
        key = str(field(members[0], GROUP)) if layout.axes.split == [GROUP] else " ".join(title)
        group = GroupRows(key=key, title=title, baseline=None, rows=[])
        if layout.axes.columns:
            samples_of, differing = _fill_with_sides(group, members, layout, metric, force=force)
            mismatches += differing
            if layout.sides and layout.kind == "platforms" and metric.is_time:
                bests.append((group, samples_of))
        else:
            _fill(group, members, layout, metric, findings, force=force)
        groups.append(group)
    _check(layout, groups, is_shown=force or explain)
    if layout.sides and layout.kind == "platforms":
        for group, samples_of in bests:
            group.best = best_of_platforms(layout.sides, group, samples_of, metric)
        # What only one platform has comes last.
        groups.sort(key=lambda group: len({row.side for row in group.rows}) == 1)
    if len(everyone) > 1:
        mismatches = [*merged(mismatches), *run_mismatches([(run.label, run.facts) for run in everyone])]
    # Those of the cells of one run are among what is said of its tables.
    notes_of_runs = [] if layout.axes is OF_CELLS else [note for run in everyone for note in run.notes]
    same_run = [Note(what=reason("same_run", profiles=", ".join(repeated)))] if repeated else []
    return Comparison(
        kind=layout.kind,
        groups=groups,
        headlines=[side.headline for side in layout.sides] or [run.headline for run in everyone],
        mismatches=mismatches,
        notes=deduplicated([*same_run, *_notes(layout, everyone, groups), *orders, *notes_of_runs]),
        by=metric.name,
        rule=everyone[0].rule,
        sides=[]
        if layout.sides
        else list(dict.fromkeys(row.side for group in groups for row in group.rows if row.side)),
    )


def compare_within(
    label: str,
    profile: Profile,
    *,
    by: str = "",
    all_cycles: bool = False,
    baseline: str | None = None,
    findings: Sequence[Finding] = (),
    names: Sequence[str] | None = None,
) -> Comparison:
    """Return the cells of one profile against each other: arguments as of `read_run` and `compare`."""
    run = read_run(label, profile, by, all_cycles=all_cycles)
    return compare([run], axes=OF_CELLS, baseline=baseline, findings=findings, names=names)


def _layout(runs: Sequence[Run], against: Sequence[Run], axes: TableAxes | None, baseline: str | None) -> Layout:
    everyone = [*runs, *against]
    samples = [sample for run in everyone for sample in run.samples.values()]
    if not samples:
        labels = " and ".join(run.label for run in everyone)
        raise NotComparableError(f"no cells in {labels}: nothing was measured; repeat the run")
    if axes is not OF_CELLS and axes is not None and any(axes):
        one_run: Literal["cells", "runs"] = "cells" if len(everyone) == 1 else "runs"
        return Layout("platforms" if axes.columns else one_run, completed(axes, samples), samples, [], baseline)
    # Cells of two devices that took turns are pairs; others are runs of two platforms.
    devices = {sample.cell.device for sample in samples} if "device" not in everyone[0].compared else ()
    if axes is OF_CELLS or (len(everyone) == 1 and len(devices) <= 1):
        samples = [sample for run in everyone for sample in run.samples_of_groups]
        return Layout("cells", OF_CELLS, samples, [], baseline)
    kind, sides = sides_beside(runs, against, baseline)
    return Layout(kind, OF_SIDES, [sample for side in sides for sample in side.samples], sides, None)


def _tables(layout: Layout) -> list[tuple[list[Sample], list[str]]]:
    """Return the samples of each table, and its title."""
    axes, tables = layout.axes, list(project(layout.samples, layout.axes.split).values())
    if axes.split == OF_CELLS.split:
        # A platform's device is no part of a title.
        anywhere = {"device": ""} if layout.kind == "platforms" else {}
        cells = [{sample.key: sample.cell for sample in reversed(members)} for members in tables]
        heads = titles([[replace(cell, **anywhere) for cell in by_key.values()] for by_key in cells])
        return list(zip(tables, heads, strict=True))
    named = []
    for members in tables:
        first, inside = members[0], {*axes.columns, *axes.rows}
        head = " ".join(name_of(first.cell, [axis]) for axis in HEAD if axis not in inside)
        others = (words(first, [axis]) for axis in axes.split if axis not in HEAD)
        named.append((members, [part for part in (head, *others) if part]))
    return named


def _fill(
    group: GroupRows,
    members: Sequence[Sample],
    layout: Layout,
    metric: Metric,
    findings: Sequence[Finding],
    *,
    force: bool,
) -> None:
    """Give a table its rows, which are compared with each other, and what they come to."""
    axes, baseline = layout.axes, layout.baseline
    rows = {words(alike[0], axes.rows): alike for alike in project(members, axes.rows).values()}
    wanted = [name for name, alike in rows.items() if baseline in _names(alike[0], axes.rows)]
    usual = [name for name, alike in rows.items() if axes is OF_CELLS and alike[0].baseline is alike[0]]
    candidates = [*wanted[:1], *usual, *rows]
    base = next((name for name in candidates if any(sample.good for sample in rows[name])), candidates[0])
    # The group's family: what each row is beside the baseline, which are fastest, and what steps come to.
    family = Family(metric, rows, base)
    steps = family if metric is STEP else Family(STEP, rows, base)
    against = [(name, base) for name in rows if name != base]
    energies, scores = (Family(beside, rows, base, pairs=against) for beside in (ENERGY, SCORE))
    cell_groups = {alike[0].cell_group: None for alike in rows.values() if len(alike) == 1}
    moving = {(cells, key): mark for cells in cell_groups if cells for key, mark in trends(metric, cells).items()}
    for name, samples in rows.items():
        row = row_of(name, samples, metric.name, layout.names, is_baseline=name == base)
        group.rows.append(row)
        row.marks = _marks(samples, moving, findings)
        if name == base or not row.has_number:
            continue
        row.blocked = _mismatches(rows[base], samples)
        if row.blocked and not force:
            continue
        row.versus, joules = family.versus(name, base), energies.versus(name, base)
        row.energy_versus = joules if joules.count else None
        difference = scores.versus(name, base)
        row.score_difference = difference if difference.count > 1 else None
        row.break_even = broken_even(name, base, rows, steps)
        if metric is STEP:
            row.scaling = scaling_of(name, base, rows, family)
    group.baseline = base
    axis = swept_axis([row.cell for row in group.rows], members[0].run.compared if axes is OF_CELLS else axes.rows)
    group.rows.sort(key=lambda row: row.judged or math.inf if axis is None else row.cell.value(axis) or 0)
    if axis is None:
        # One that averages nothing does not do the work.
        without = members[0].run.without_all_reduce
        bound = {name for name, samples in rows.items() if any(is_bound(sample.facts) for sample in samples)}
        left_out = bound if len(bound) < len(rows) else ()
        working = (
            row
            for row in group.rows
            if row.cell.variant not in without
            and row.kept_apart not in (SAME_CODE, OTHER_LOSSES)
            and row.name not in left_out
        )
        group.leaders = leaders_of([row.name for row in working if row.judged], family)
    elif metric is STEP:
        group.recommendation = recommended(axis, group.rows, family)
    once: dict[tuple[str, str, str], Finding] = {}  # a baseline is measured in every part of its group
    cell_keys = {"", *(row.cell_key for row in group.rows)}
    for finding in findings:
        if whole_key(finding.group) == group.key and finding.cell_key in cell_keys:
            once.setdefault((finding.cell_key, finding.code, finding.about), finding)
    group.findings = list(once.values())


def row_of(
    name: str,
    samples: Sequence[Sample],
    metric: str,
    names: Sequence[str] | None = None,
    *,
    member: str = "",
    side: str = "",
    is_baseline: bool = False,
) -> Row:
    """Return the row of some samples, one a run, with these metrics; None: all, and what was counted and sampled."""
    first = samples[0]
    judged = judged_name(metric, first)
    of_operation = is_operation(first.cell)
    asked = [*METRICS] if names is None else [*names, judged, *(RATE if of_operation else ())]
    if first.cell_group is None:  # its launches were dropped
        asked = [*dict.fromkeys(chain.from_iterable(sample.values for sample in samples))]
    values = {known: value_of_runs(METRICS[known], samples) for known in asked}
    return Row(
        name=name,
        member=member or name,
        side=side,
        cell=first.cell,
        cell_key=first.cell_key,
        key=first.key,
        is_operation=of_operation,
        has_samples=first.cell.precision != OWN or first.run is None or not first.run.profile.suite.batch_is_default,
        profiles=[sample.run.label for sample in samples] if side else [],
        hosts=list(dict.fromkeys(sample.run.host or sample.run.hardware for sample in samples if sample.run)),
        is_baseline=is_baseline,
        metric=metric,
        judged=values.get(judged),
        values=values,
        values_of_runs=[sample.values for sample in samples],
        details=details(first) if names is None and len(samples) == 1 else {},
        failure=next((sample.failure for sample in samples if sample.failure is not None), None),
    )


def _names(sample: Sample, axes: Sequence[str]) -> list[str]:
    """Return the names by which a user may choose a row or a side as the baseline."""
    return [words(sample, axes), *(str(field(sample, axis)) for axis in axes)]


def _marks(
    samples: Sequence[Sample], moving: Mapping[tuple[CellGroup, str], Reason], findings: Sequence[Finding]
) -> list[Reason]:
    """Return what a row's launches were marked with; of one run also stalls, a trend (`moving`) and two modes."""
    marks, first = counted_marks(mark for sample in samples for mark in sample.marks), samples[0]
    cell_group = first.cell_group if len(samples) == 1 else None
    if cell_group is None:
        return marks
    where = "stalls", first.cell_key, cell_group.key
    stalls = [known for known in findings if (known.code, known.cell_key, whole_key(known.group)) == where]
    marks += [reason("stalls", share_pct=finding.values["stalled_pct"]) for finding in stalls]
    marks += [
        reason(known.code, **known.values)
        for known in findings
        if known.code in CHANGES and (known.cell_key, whole_key(known.group)) == where[1:]
    ]
    marks += [moving[cell_group, first.cell_key]] if (cell_group, first.cell_key) in moving else []
    modes = next((modes for (_, key), modes in cell_group.modes.items() if key == first.cell_key), None)
    slow = [] if modes is None else [reason("two_modes", fast_ns=modes.step_ns[0], slow_ns=modes.step_ns[1])]
    return marks + slow


def _fill_with_sides(
    group: GroupRows, members: Sequence[Sample], layout: Layout, metric: Metric, *, force: bool
) -> tuple[dict[str, list[Sample]], list[Mismatch]]:
    """Give a table its rows, each once for every side; return their samples, and in what two sides are not alike."""
    axes, sides, mismatches, samples_of = layout.axes, layout.sides, list[Mismatch](), dict[str, list[Sample]]()
    names = {words(alike[0], axes.columns): alike[0] for alike in project(members, axes.columns).values()}
    wanted = [name for name, first in names.items() if layout.baseline in _names(first, axes.columns)]
    labels = [side.label for side in sides] or list(dict.fromkeys([*wanted, *names]))
    rows, group.baseline = project(members, axes.rows), labels[0]
    for samples in _in_order(rows, labels[0], metric) if sides else rows.values():
        member, by_side = words(samples[0], axes.rows), dict[str, list[Sample]]()
        for sample in samples:
            by_side.setdefault(words(sample, axes.columns), []).append(sample)
        base = by_side.get(labels[0], [])
        for label in labels:
            here = by_side.get(label, [])
            if not here:
                runs = [run for side in sides if side.label == label for run in side.runs]
                why = why_missing(runs, samples[0].cell)
                group.missing += [] if layout.kind == "runs" else [Missing(member=member, side=label, reason=why)]
                continue
            name, is_base = f"{member} · {label}", label == labels[0]
            row = row_of(name, here, metric.name, layout.names, member=member, side=label, is_baseline=is_base)
            samples_of[name] = here
            row.marks = _marks(here, {}, ())
            group.rows.append(row)
            if base and not row.is_baseline:
                differing = _mismatches(base, here)
                row.blocked = blocking(differing)
                mismatches += [mismatch for mismatch in differing if mismatch.kind != SAME_CODE]
    # One table is one family.
    bases = {row.member: row.name for row in group.rows if row.is_baseline}
    judged = [row for row in group.rows if not row.is_baseline and row.member in bases and (force or not row.blocked)]
    pairs = [(row.name, bases[row.member]) for row in judged]
    family = Family(metric, samples_of, "", pairs=pairs)
    for row, pair in zip(judged, pairs, strict=True):
        known = family.versus(*pair)
        row.versus = known if known.count or not sides else None
    return samples_of, mismatches


def _mismatches(base: Sequence[Sample], samples: Sequence[Sample]) -> list[Mismatch]:
    """Return why the cells of two rows are kept apart; of one run as the same code or by their losses."""
    known = {sample.run: sample for sample in base}
    if pairs := [(sample, known[sample.run]) for sample in samples if sample.run in known]:
        code = [mismatch for a, b in pairs for mismatch in blocked_by_code(a.run.profile.suite, a, b)]
        # A variant may bind its threads on purpose.
        of_variant = [(a, b) for a, b in pairs if a.cell.variant == b.cell.variant]
        bound = [known for a, b in of_variant for known in apart_in_threads([(b.name, b.facts), (a.name, a.facts)])]
        like_precision = [(a, b) for a, b in pairs if a.cell.precision == b.cell.precision]
        losses = [
            known
            for a, b in like_precision
            for known in apart_in_losses([(b.name, b.facts), (a.name, a.facts)], a.cell.precision)
        ]
        return [*code, *losses, *bound][:1]
    is_like = len({sample.run.hardware for sample in (*base, *samples)}) == 1
    mismatches = []
    # Cells of one side are held against each other, whatever the other side's machine is.
    for alike in [[*base, *samples]] if is_like else [[*base, *samples], base, samples]:
        like_hardware = len({sample.run.hardware for sample in alike}) == 1
        facts = [(sample.run.label, sample.facts) for sample in alike]
        mismatches += cell_mismatches(facts, base[0].cell.precision, like_hardware=like_hardware)
    return merged(mismatches)


def _in_order(rows: Mapping[Key, list[Sample]], base: str, metric: Metric) -> list[list[Sample]]:
    """Return the points of a sweep in its order, other cells by the baseline's time, fastest first."""
    cells = [samples[0].cell for samples in rows.values()]
    axis = swept_axis(cells, axes_of(cells))

    def order(samples: list[Sample]) -> float:
        if axis is not None:
            return float(samples[0].cell.value(axis) or 0)
        known = (value(sample, judged_name(metric.name, sample)) for sample in samples if sample.side == base)
        return min((number for number in known if number is not None), default=math.inf)

    return sorted(rows.values(), key=order)


def _check(layout: Layout, groups: Sequence[GroupRows], *, is_shown: bool) -> None:
    """Raise KitError where no table has the baseline that was named, or no cell can be compared between sides."""
    axes = layout.axes.columns or layout.axes.rows
    if layout.baseline is not None and not any(layout.baseline in _names(sample, axes) for sample in layout.samples):
        names = dict.fromkeys(words(sample, axes) for sample in layout.samples)
        where = f" in {layout.samples[0].run.label}" if layout.kind == "cells" else ""
        listed = choices(layout.baseline.lower(), sorted(names))
        raise KitError(f"no baseline {layout.baseline!r}{where}; {listed}")
    if not layout.sides:
        return
    base, later, *_ = layout.sides
    on_base = {sample.key for sample in base.samples}
    if not any(sample.key in on_base and sample.side != base.label for sample in layout.samples):
        cells = [[sample.cell for sample in side.samples] for side in (base, later)]
        programs = [dict(chain.from_iterable(run.programs.items() for run in side.runs)) for side in (base, later)]
        raise nothing_common(*map(Programs, (base.label, later.label), cells, programs))
    compared = [row for group in groups for row in group.rows if not row.is_baseline and row.key in on_base]
    if not is_shown and all(row.blocked for row in compared):
        raise refusal(compared[0].blocked[0])


def _notes(layout: Layout, everyone: Sequence[Run], groups: Sequence[GroupRows]) -> list[Note]:
    """Return what has to be said beside the tables."""
    first = everyone[0]
    if layout.axes is OF_CELLS:
        left_out = [note for note in first.notes if note.what.code in ON_CYCLES]
        return [*notes_within(first, groups), *left_out]
    notes, named = by_notes(first.by), [*layout.axes.columns, *layout.axes.rows]
    apart = sum(row.versus is not None and row.versus.count == 0 for group in groups for row in group.rows)
    notes += [Note(what=reason("not_together", rows=apart, axes=",".join(named)))] if apart else []
    if first.by == "peak_memory_b" and len({sample.cell.device for sample in layout.samples}) > 1:
        notes.append(Note(what=reason("memory_of_unlike_devices")))
    is_like = len({sample.run.hardware for sample in layout.samples}) == 1
    return [*notes, *notes_between(groups, is_like=is_like)]
