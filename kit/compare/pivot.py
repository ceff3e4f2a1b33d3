"""A suite's own table: a row for each combination of some axes, and under each device of each profile its figures.

                cpu · mine                gpu · five-nets, published
                train time   test time    gain
mlp  torch          4.21 s       93 ms    697 %
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec

from kit.compare.fits import epoch_ns, fit_numbers
from kit.compare.measured import numbers_of
from kit.compare.within import first_failure
from kit.profile.cell import Cell, Device
from kit.profile.published import FigureName
from kit.profile.reason import Reason, reason
from kit.profile.schema import CellResult, Profile
from kit.stats.metrics import metrics

RowKey = tuple[str, ...]
# Each with the time that it compares, a CPU's over the device's.
GAINS: dict[FigureName, FigureName] = {
    "train_gain_pct": "train_time_s",
    "test_gain_pct": "test_time_s",
    "train_sample_gain_pct": "train_sample_ns",
    "infer_sample_gain_pct": "infer_sample_ns",
}


# Of a published cell: its document does not say.
UNKNOWN = "unknown"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One figure; null with the reason."""

    value: float | None = None
    spread: float | None = None  # standard deviation over repeats, of scores
    reason: Reason | None = None


class PivotColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One device of one profile."""

    profile: str  # label
    device: Device
    source: str | None  # document of figures that were not measured


class Pivot(msgspec.Struct, frozen=True, kw_only=True):
    """The whole table."""

    title: str
    axes: list[str]
    figures: list[FigureName]
    rows: list[RowKey]
    columns: list[PivotColumn]
    entries: list[list[dict[FigureName, Entry]]]  # of row and column
    epochs: int | None  # of the fits
    cpus: list[str]  # models, of the profiles that were measured


Column = dict[RowKey, dict[FigureName, Entry]]


def pivot(
    title: str, axes: Sequence[str], figures: Sequence[FigureName], profiles: Iterable[tuple[str, Profile]]
) -> Pivot:
    """Return the table of some profiles.

    Args:
        title: of the suite.
        axes: whose combinations are the rows, in order of their first appearance.
        figures: under each device.
        profiles: with their labels, measured and published.
    """
    given = list(profiles)
    keys = dict.fromkeys(_row_key(one.cell, axes) for _, profile in given for one in profile.cells)
    rows = [key for key in keys if UNKNOWN not in key]
    # What a document leaves open stands beside every row that it may be.
    rows = _in_order(rows + [key for key in keys if UNKNOWN in key and not any(_may_be(key, row) for row in rows)])
    heads, columns = [], []
    for label, profile in given:
        for device in get_args(Device):
            own = [(_row_key(one.cell, axes), one) for one in profile.cells if one.cell.device == device]
            if own:
                heads.append(PivotColumn(profile=label, device=device, source=profile.source))
                of_row = {row: [one for key, one in own if _may_be(key, row)] for row in rows}
                columns.append({row: _entries(profile, cells, figures) for row, cells in of_row.items()})
    for place, column in enumerate(columns):
        base = next((at for at, head in enumerate(heads) if _is_base(head, heads[place])), None)
        _add_gains(column, None if base is None else columns[base], figures, is_base=base == place)
    fits = [one.fit for _, profile in given for result in profile.cells for one in result.launches if one.fit]
    return Pivot(
        title=title,
        axes=list(axes),
        figures=list(figures),
        rows=rows,
        columns=heads,
        entries=[[column[key] for column in columns] for key in rows],
        epochs=fits[0].epochs if fits else None,
        cpus=list(dict.fromkeys(profile.identity.cpu.model for _, profile in given if profile.measured)),
    )


def _row_key(cell: Cell, axes: Sequence[str]) -> RowKey:
    return tuple(UNKNOWN if (value := cell.value(axis)) is None else str(value) for axis in axes)


def _in_order(rows: Sequence[RowKey]) -> list[RowKey]:
    """Return the rows by their axes from left to right: numbers by size, names as they first appeared."""
    names = [list(dict.fromkeys(own)) for own in zip(*rows, strict=True)]

    def place(row: RowKey) -> list[int]:
        return [int(one) if one.isdecimal() else own.index(one) for one, own in zip(row, names, strict=True)]

    return sorted(rows, key=place)


def _may_be(key: RowKey, row: RowKey) -> bool:
    return all(own in (UNKNOWN, other) for own, other in zip(key, row, strict=True))


def _is_base(head: PivotColumn, of: PivotColumn) -> bool:
    """Whether gains of a column are over this one: a CPU's, of the same document or measured like it."""
    return head.device == "cpu" and head.source == of.source


def _entries(profile: Profile, cells: Sequence[CellResult], figures: Sequence[FigureName]) -> dict[FigureName, Entry]:
    wanted = dict.fromkeys([*figures, *(GAINS[name] for name in figures if name in GAINS)])
    if not profile.measured:
        given = {one.figure: one.value for result in cells for one in result.published}
        nothing = Entry(reason=reason("not_published"))
        return {name: Entry(value=given[name]) if name in given else nothing for name in wanted}
    measured = _measured(cells)
    failed = next((why for result in cells if (why := first_failure(result.launches)) is not None), None)
    missing = Entry(reason=failed or reason("not_measured"))
    return {name: measured.get(name, missing) for name in wanted}


def _measured(cells: Sequence[CellResult]) -> dict[FigureName, Entry]:
    """Return the figures of cells that differ in their task, and in what no row tells apart: the first of each task."""
    found: dict[FigureName, Entry] = {}
    for result in reversed(cells):
        task = result.cell.task
        numbers = numbers_of(result.cell, result.launches, set(), details=False)
        if task == "fit":
            found |= _of_fit(result)
        elif numbers.sample_ns is not None and numbers.step_ns is not None:
            found["infer_sample_ns" if task == "infer" else "train_sample_ns"] = Entry(value=numbers.sample_ns)
            if task == "train":
                found["step_ns"] = Entry(value=numbers.step_ns)
    return found


def _of_fit(result: CellResult) -> dict[FigureName, Entry]:
    fits = [(launch, launch.fit) for launch in result.launches if launch.gave_number and launch.fit is not None]
    numbers = fit_numbers(result.launches)
    if numbers is None:
        return {}
    epochs = [own for launch, fit in fits if (own := epoch_ns(launch, fit)) is not None]
    found: dict[FigureName, Entry] = {
        "train_time_s": Entry(value=numbers.total_ns / 1e9),
        "epoch_time_s": Entry(value=statistics.fmean(epochs) / 1e9) if epochs else Entry(reason=reason("one_epoch")),
    }
    if numbers.test_ns is not None:
        found["test_time_s"] = Entry(value=numbers.test_ns / 1e9)
    counted = [fit.confusion for _, fit in fits if fit.confusion is not None]
    if counted:
        scores = [metrics(one) for one in counted]
        found["accuracy"] = _over_repeats([one.accuracy for one in scores])
        found["precision"] = _over_repeats([one.macro_precision for one in scores])
        found["recall"] = _over_repeats([one.macro_recall for one in scores])
        found["f1"] = _over_repeats([one.macro_f1 for one in scores])
    else:
        why = next((fit.reason for _, fit in fits if fit.reason is not None), reason("no_classes"))
        found |= dict.fromkeys(("accuracy", "precision", "recall", "f1"), Entry(reason=why))
    return found


def _over_repeats(values: Sequence[float]) -> Entry:
    return Entry(value=statistics.fmean(values), spread=statistics.stdev(values) if len(values) > 1 else None)


def _add_gains(column: Column, base: Column | None, figures: Sequence[FigureName], *, is_base: bool) -> None:
    for key, entries in column.items():
        for gain, time in ((name, GAINS[name]) for name in figures if name in GAINS):
            if entries[gain].value is None:
                entries[gain] = _gain(entries[time], None if base is None else base[key][time], is_base=is_base)


def _gain(own: Entry, base: Entry | None, *, is_base: bool) -> Entry:
    if is_base:
        return Entry(reason=reason("gains_are_over_this"))
    if own.value is None:
        return own
    if base is None or base.value is None:
        return Entry(reason=reason("no_cpu_to_gain_over"))
    return Entry(value=100 * base.value / own.value)
