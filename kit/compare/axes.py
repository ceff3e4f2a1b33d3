"""Fields of samples, and which of them make tables, rows and columns; `--filter` keeps samples by them, too.

    kit compare sweep.json --rows batch --columns backend          a row for each batch, PyTorch against JAX in it
    kit compare a.json b.json c.json --rows host --columns precision --filter 'backend=torch batch>=64'

A field that a user names is one of the cell, of its parameters or of the run.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kit.compare.naming import axes_of, axis_values, name_of, short_model
from kit.compare.runs import Run, Sample
from kit.errors import KitError
from kit.nearest import did_you_mean
from kit.profile.cell import AXES, OTHER_NAMES, axis_named

AxisValue = str | int | None
Key = tuple[AxisValue, ...]
# A published cell's value on an axis that its document does not state.
ANY = "any"
# No parameter of a cell has a name with a full stop.
GROUP, CELL, SIDE = "sample.group", "sample.cell", "sample.side"
SAMPLE_FIELDS: Mapping[str, Callable[[Sample], AxisValue]] = {
    GROUP: lambda sample: sample.table or sample.group,
    CELL: lambda sample: sample.key,
    SIDE: lambda sample: sample.side,
}
RUN_FIELDS: Mapping[str, Callable[[Run], AxisValue]] = {
    "file": lambda run: run.label,
    "label": lambda run: run.given_label or run.label,
    # The name of a container is drawn anew for each: its machine is known by its hardware.
    "host": lambda run: run.host[:8] or f"container {run.hardware[:8]}",
    "cpu": lambda run: short_model(run.headline.cpu),
    "date": lambda run: run.headline.created[:10],
    "kit": lambda run: run.headline.kit,
    "suite": lambda run: run.headline.suite,
}
TERM = re.compile(r"(?P<axis>[\w.-]+)(?P<sign>>=|<=|!=|=|>|<)(?P<values>\S+)")
ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


class TableAxes(NamedTuple):
    """Names of fields: each value of `split` has a table, each of `rows` a row, each of `columns` a side of a row."""

    split: Sequence[str] = ()
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [*self.split, *self.rows, *self.columns]


def field(sample: Sample, axis: str) -> AxisValue:
    """Return a sample's value on an axis."""
    if axis in SAMPLE_FIELDS:
        return SAMPLE_FIELDS[axis](sample)
    return RUN_FIELDS[axis](sample.run) if axis in RUN_FIELDS else sample.cell.value(axis)


def words(sample: Sample, axes: Sequence[str]) -> str:
    """Return what names a row, or a side of it: ``torch batch 64``."""
    named = []
    for axis in axes:
        if axis == CELL:
            named.append(sample.name)
        elif axis in SAMPLE_FIELDS or axis in RUN_FIELDS:
            named.append(str(field(sample, axis)))
        elif axis in AXES or field(sample, axis) is not None:
            named.append(name_of(sample.cell, [axis]))
    return " ".join(named)


def project(
    samples: Iterable[Sample], axes: Sequence[str], read: Callable[[Sample, str], AxisValue] = field
) -> dict[Key, list[Sample]]:
    """Return the samples by their values on these axes: numbers by size, names as they first appear, `any` last.

    `read` returns a sample's value on an axis.
    """
    projected: dict[Key, list[Sample]] = {}
    for sample in samples:
        projected.setdefault(tuple([read(sample, axis) for axis in axes]), []).append(sample)
    names = [list(dict.fromkeys(values)) for values in zip(*projected, strict=True)]

    def order(key: Key) -> list[tuple[bool, int]]:
        return [
            (value == ANY, value if isinstance(value, int) else on_axis.index(value))
            for value, on_axis in zip(key, names, strict=True)
        ]

    return {key: projected[key] for key in sorted(projected, key=order)}


def completed(axes: TableAxes, samples: Sequence[Sample]) -> TableAxes:
    """Return the axes that a user names, and those that tell the other samples apart.

    TableAxes that nobody names and in which cells differ make further tables, or rows where none were asked for: unlike
    cells are never taken for repeats of one.

    Raises:
        KitError: no profile has such an axis, one is named twice, or there is a single column.
    """
    axes = TableAxes(*([named_axis(axis, samples) for axis in names] for names in axes))
    for axis in axes.names:
        if axes.names.count(axis) > 1:
            raise KitError(f"{axis} is named twice; give each axis once, in --split, --rows or --columns")
    if axes.columns and len(only := project(samples, axes.columns)) == 1:
        shown = words(next(iter(only.values()))[0], axes.columns)
        raise KitError(f"all cells are {shown}; --columns compares two values and more")
    rest = list[str]()
    for axis in axes_of([sample.cell for sample in samples]):
        # An axis that varies only with a named one, as the compile mode with the framework, needs no table of its own.
        alike = project(samples, [*axes.names, *rest]).values() if axis not in axes.names else ()
        if any(len({field(sample, axis) for sample in cells}) > 1 for cells in alike):
            rest.append(axis)
    # Runs on other hardware are no repeats of each other; nor are those of two labels, unless a field of runs is named.
    is_named = bool(RUN_FIELDS.keys() & {*axes.names})
    for cells in project(samples, [*axes.names, *rest]).values():
        if len({(sample.run.hardware, is_named or sample.run.given_label) for sample in cells}) > 1:
            rest.append("file")
            break
    if axes.rows:
        return axes._replace(split=[*axes.split, *rest])
    heads = [] if axes.split else [axis for axis in ("workload", "task") if axis in rest]
    rows = [axis for axis in rest if axis not in heads] or ["backend"]
    return axes._replace(split=[*axes.split, *heads], rows=rows)


def named_axis(name: str, samples: Sequence[Sample]) -> str:
    """Return the axis that a user calls so; where no profile has one, raise KitError with those that there are."""
    axes = [*axes_of([sample.cell for sample in samples]), *RUN_FIELDS]
    axis = axis_named(name, axes)
    if axis not in axes:
        differ = [known for known in axes if len({field(sample, known) for sample in samples}) > 1]
        meant = did_you_mean(name, [*axes, *OTHER_NAMES]) or f"; the cells differ in {', '.join(differ) or 'nothing'}"
        raise KitError(f"no profile has the axis {name!r}{meant}")
    return axis


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
        sign, values = match["sign"], match["values"].split(",")
        samples = [sample for run in listed for sample in run.samples.values()]
        axis = named_axis(match["axis"], samples)
        present = list(dict.fromkeys(field(sample, axis) for sample in samples))
        kept = {value for value in present if _is_kept(value, sign, values, term)}
        if not kept:
            raise KitError(f"no cell matches --filter {term}; {axis} is {_nearest(present, values)}")
        for run in listed:
            run.samples = {key: sample for key, sample in run.samples.items() if field(sample, axis) in kept}
    for run in listed:
        cells = [sample.cell for sample in run.samples.values()]
        devices = [used for used in run.headline.devices if any(cell.device == used.kind for cell in cells)]
        run.headline = replace(run.headline, axes=axis_values(cells), devices=devices)


def _is_kept(value: AxisValue, sign: str, values: Sequence[str], term: str) -> bool:
    if sign in ("=", "!="):
        return (str(value) in values) == (sign == "=")
    try:
        limit = float(values[0])
    except ValueError:
        raise KitError(f"--filter {term!r} compares with a number; give one after {sign}") from None
    return isinstance(value, int | float) and ORDERS[sign](value, limit)


def _nearest(present: Sequence[AxisValue], values: Sequence[str]) -> str:
    """Return the values that there are, the nearest of them first."""
    numbers = [value for value in present if isinstance(value, int)]
    if numbers and values[0].replace(".", "", 1).isdecimal():
        near = min(numbers, key=lambda value: abs(value - float(values[0])))
        if len(numbers) == 1:
            return f"{near} in every cell"
        return f"{near} at the nearest, of {', '.join(map(str, sorted(numbers)))}"
    shown = list(map(str, present))
    return ", ".join(shown) + did_you_mean(values[0], shown)
