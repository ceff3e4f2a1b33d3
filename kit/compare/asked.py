"""What a user asks for: which cells (`--filter`), in which tables (`--split`), as which rows and columns.

    kit compare sweep.json --rows batch --columns backend          a row for each batch, PyTorch against JAX in it
    kit compare a.json b.json c.json --rows host --columns precision --filter 'backend=torch batch>=64'

An axis is a field of the cell, of its parameters or of the run. Axes that nobody names and in which cells differ make
further tables, or rows where none were asked for: unlike cells are never taken for repeats of one.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from kit.compare.comparability import blocking, cell_mismatches, run_mismatches
from kit.compare.compare import family_rows, good_baseline, judge_sides, side_row
from kit.compare.conclusions import leaders_of
from kit.compare.family import Family
from kit.compare.metrics import METRICS
from kit.compare.naming import axes_of, name_of, short_model, swept_axis
from kit.compare.notes import by_notes, contention_notes, deduplicated, joules_notes, spread_notes
from kit.compare.rows import Comparison, GroupRows, Mismatch, Missing, Note, Row
from kit.compare.sample import Run, Sample
from kit.errors import KitError
from kit.profile.cell import AXES
from kit.profile.reason import reason

Value = str | int | None
Key = tuple[Value, ...]
# A published cell's value on an axis that its document does not state.
ANY = "any"
RUN_FIELDS: Mapping[str, Callable[[Run], Value]] = {
    "file": lambda run: run.label,
    "label": lambda run: run.given_label or run.label,
    "host": lambda run: run.host[:8] or "a container",
    "cpu": lambda run: short_model(run.headline.cpu),
    "date": lambda run: run.headline.created[:10],
    "kit": lambda run: run.headline.kit,
    "suite": lambda run: run.headline.suite,
}
TERM = re.compile(r"(?P<axis>[\w.]+)(?P<sign>>=|<=|!=|=|>|<)(?P<values>\S+)")
ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


class Asked(NamedTuple):
    """Names of axes."""

    split: Sequence[str] = ()  # a table for each of their values
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()

    @property
    def axes(self) -> list[str]:
        """All of them."""
        return [*self.split, *self.rows, *self.columns]


def field(sample: Sample, axis: str) -> Value:
    """Return a sample's value on an axis."""
    return RUN_FIELDS[axis](sample.run) if axis in RUN_FIELDS else sample.cell.value(axis)


def check_axis(axis: str, samples: Sequence[Sample]) -> None:
    """Raise KitError where no profile has such an axis; it says which there are."""
    axes = [*axes_of([sample.cell for sample in samples]), *RUN_FIELDS]
    if axis not in axes:
        near = get_close_matches(axis, axes, 1)
        differ = [name for name in axes if len({field(sample, name) for sample in samples}) > 1]
        meant = f"; did you mean {near[0]}?" if near else f"; the cells differ in {', '.join(differ) or 'nothing'}"
        raise KitError(f"no profile has the axis {axis!r}{meant}")


def filter_runs(runs: Iterable[Run], terms: str) -> None:
    """Keep the cells for which all terms are true, such as ``backend=torch,jax batch>=64``.

    Raises:
        KitError: a term is none, no profile has its axis, or no cell is left; it names the nearest value.
    """
    listed = list(runs)
    for term in terms.split():
        match = TERM.fullmatch(term)
        if match is None:
            raise KitError(f"--filter {term!r} is no condition; write AXIS=VALUE,VALUE or AXIS>=NUMBER")
        axis, sign, values = match["axis"], match["sign"], match["values"].split(",")
        samples = [sample for run in listed for sample in run.samples.values()]
        check_axis(axis, samples)
        present = list(dict.fromkeys(field(sample, axis) for sample in samples))
        kept = {value for value in present if _is_kept(value, sign, values, term)}
        if not kept:
            raise KitError(f"no cell matches --filter {term}; {axis} is {_nearest(present, values)}")
        for run in listed:
            run.samples = {key: sample for key, sample in run.samples.items() if field(sample, axis) in kept}


def _is_kept(value: Value, sign: str, values: Sequence[str], term: str) -> bool:
    if sign in ("=", "!="):
        return (str(value) in values) == (sign == "=")
    try:
        limit = float(values[0])
    except ValueError:
        raise KitError(f"--filter {term!r} compares with a number; give one after {sign}") from None
    return isinstance(value, int | float) and ORDERS[sign](value, limit)


def _nearest(present: Sequence[Value], values: Sequence[str]) -> str:
    """Return the values that there are, the nearest of them first."""
    numbers = [value for value in present if isinstance(value, int)]
    if numbers and values[0].replace(".", "", 1).isdecimal():
        near = min(numbers, key=lambda value: abs(value - float(values[0])))
        return f"{near} at the nearest, of {', '.join(map(str, sorted(numbers)))}"
    close = get_close_matches(values[0], map(str, present), 1)
    return ", ".join(map(str, present)) + (f"; did you mean {close[0]}?" if close else "")


def compare_asked(
    runs: Sequence[Run], asked: Asked, *, by: str = "step_ns", baseline: str | None = None, force: bool = False
) -> Comparison:
    """Return the samples of some runs in the tables, rows and columns that a user asks for.

    Args:
        runs: one and more, read with their launches.
        asked: names of axes.
        by: name of the metric that is compared.
        baseline: a value of the columns, or of the rows where there are none; null: the first.
        force: compare what the gate would keep apart.

    Raises:
        KitError: no profile has such an axis, or no column or row such a value.
    """
    samples = [sample for run in runs for sample in run.samples.values()]
    for axis in asked.axes:
        check_axis(axis, samples)
    # A mode that goes with the framework tells nothing apart that the framework does not.
    rest = list[str]()
    for axis in axes_of([sample.cell for sample in samples]):
        alike = project(samples, [*asked.axes, *rest]).values() if axis not in asked.axes else ()
        if any(len({field(sample, axis) for sample in cells}) > 1 for cells in alike):
            rest.append(axis)
    # Runs of several machines or labels are no repeats of each other.
    if len({(run.identity, run.given_label) for run in runs}) > 1 and not RUN_FIELDS.keys() & {*asked.axes}:
        rest.append("file")
    split, rows = [*asked.split, *rest], list(asked.rows)
    if not rows:
        heads = [] if asked.split else [axis for axis in ("workload", "task") if axis in rest]
        split, rows = [*asked.split, *heads], [axis for axis in rest if axis not in heads] or ["backend"]
    groups, apart = list[GroupRows](), 0
    for members in project(samples, split).values():
        group = _sided(members, rows, asked.columns, by, baseline, force=force) if asked.columns else None
        group = group or _alone(members, rows, by, baseline)
        inside = {*asked.columns, *rows}
        head = " ".join(name_of(members[0].cell, [axis]) for axis in ("workload", "task") if axis not in inside)
        others = [axis for axis in split if axis not in ("workload", "task")]
        group.title = [part for part in (head, *(_words(members[0], [axis]) for axis in others)) if part]
        group.key = " ".join(group.title)
        apart += sum(row.versus is not None and row.versus.count == 0 for row in group.rows)
        groups.append(group)
    notes = [Note(what=reason("not_together", rows=apart, axes=",".join([*asked.columns, *rows])))] if apart else []
    notes += [*spread_notes(groups, []), *joules_notes(groups), *(contention_notes(groups) if asked.columns else [])]
    return Comparison(
        kind="platforms" if asked.columns else "cells" if len(runs) == 1 else "runs",
        groups=groups,
        headlines=[run.headline for run in runs],
        mismatches=run_mismatches([(run.label, run.facts) for run in runs]) if len(runs) > 1 else [],
        notes=deduplicated([*by_notes(by), *notes, *(note for run in runs for note in run.notes)]),
        by=by,
        sides=list(dict.fromkeys(row.side for group in groups for row in group.rows)) if asked.columns else [],
    )


def project(
    samples: Iterable[Sample], axes: Sequence[str], read: Callable[[Sample, str], Value] = field
) -> dict[Key, list[Sample]]:
    """Return the samples by their values on these axes: numbers by size, names as they first appear, `any` last.

    `read` returns a sample's value on an axis.
    """
    projected: dict[Key, list[Sample]] = {}
    for sample in samples:
        projected.setdefault(tuple(read(sample, axis) for axis in axes), []).append(sample)
    names = [list(dict.fromkeys(values)) for values in zip(*projected, strict=True)]

    def order(key: Key) -> list[tuple[bool, int]]:
        return [
            (value == ANY, value if isinstance(value, int) else on_axis.index(value))
            for value, on_axis in zip(key, names, strict=True)
        ]

    return {key: projected[key] for key in sorted(projected, key=order)}


def _words(sample: Sample, axes: Sequence[str]) -> str:
    """Return what names a row, or a column: ``torch batch 64``."""
    return " ".join(
        str(field(sample, axis)) if axis in RUN_FIELDS else name_of(sample.cell, [axis])
        for axis in axes
        if field(sample, axis) is not None or axis in AXES
    )


def _by_name(
    members: Sequence[Sample], axes: Sequence[str], baseline: str | None, what: str
) -> tuple[dict[str, list[Sample]], list[str]]:
    """Return samples by the words of their values on these axes; and these names, the baseline's, if any, first."""
    named = {_words(alike[0], axes): alike for alike in project(members, axes).values()}
    wanted = [name for name, (first, *_) in named.items() if baseline in (name, *(str(field(first, a)) for a in axes))]
    if baseline is not None and not wanted:
        raise KitError(f"no {what} {baseline!r}; choose from {', '.join(named)}")
    return named, [*wanted, *named]


def _alone(members: Sequence[Sample], rows: Sequence[str], by: str, baseline: str | None) -> GroupRows:
    """Return rows that are compared with one of them."""
    samples, names = _by_name(members, rows, baseline, "row")
    base, keys = good_baseline(names, samples), {name: name for name in samples}
    family = Family(METRICS[by], samples, base)
    made = family_rows(samples, keys, base, family)
    is_swept = swept_axis([row.cell for row in made], rows) is not None
    fastest = sorted((row for row in made if row.judged), key=lambda row: row.judged or 0)
    leaders = None if is_swept else leaders_of([row.name for row in fastest], family, keys)
    ordered = made if is_swept else [*fastest, *(row for row in made if not row.judged)]
    return GroupRows(key="", title=[], baseline=base, rows=ordered, leaders=leaders)


def _sided(
    members: Sequence[Sample],
    rows: Sequence[str],
    columns: Sequence[str],
    by: str,
    baseline: str | None,
    *,
    force: bool,
) -> GroupRows:
    """Return rows in each of which the sides are compared with the baseline's."""
    sides, (base_side, *_) = _by_name(members, columns, baseline, "column")
    group, metric = GroupRows(key="", title=[], baseline=base_side, rows=[]), METRICS[by]
    for asked in project(members, rows).values():
        member = _words(asked[0], rows)
        for side in sides:
            samples = [sample for sample in asked if sample in sides[side]]
            if samples:
                group.rows.append(side_row(member, side, samples, metric, is_baseline=side == base_side))
            else:
                group.missing.append(Missing(member=member, side=side, reason=reason("not_measured")))
    bases = {row.member: row for row in group.rows if row.is_baseline}
    for row in (row for row in group.rows if not row.is_baseline and row.member in bases):
        row.blocked = _mismatches(row, bases[row.member])
    judge_sides(group.rows, metric, force=force)
    return group


def _mismatches(row: Row, base: Row) -> list[Mismatch]:
    """Return why the gate keeps two rows of different runs apart; cells of one run ran alike."""
    if {sample.run for sample in row.samples} & {sample.run for sample in base.samples}:
        return []
    facts = [(sample.run.label, sample.facts) for sample in (*base.samples, *row.samples)]
    alike = len({sample.run.hardware for sample in (*base.samples, *row.samples)}) == 1
    return blocking(cell_mismatches(facts, base.cell.precision, like_hardware=alike))
