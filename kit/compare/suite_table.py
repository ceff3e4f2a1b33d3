"""A suite's own table: a row for each combination of some axes, and under each device of each profile its figures.

                cpu · mine                gpu · five-nets, published
                train time   test time    gain
mlp  torch          4.21 s       93 ms    697 %
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kit.compare.ceilings import without_operations
from kit.compare.cell_numbers import first_failure
from kit.compare.clean_cycles import CountedCycles, count_cycles
from kit.compare.comparability import blocking, cell_mismatches
from kit.compare.devices_used import devices_used
from kit.compare.explaining_facts import cell_facts
from kit.compare.fits import epoch_ns
from kit.compare.gains import gain_pct
from kit.compare.rows import Mismatch, Numbers
from kit.compare.runs import Run, reduce_run
from kit.devices.catalog import DEVICES
from kit.profile.cell import AXES, Cell, Task
from kit.profile.launch import Launch
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
# Each with the task that it times.
TIMED: dict[FigureName, Task] = {
    "train_time_s": "fit",
    "test_time_s": "fit",
    "train_sample_ns": "train",
    "infer_sample_ns": "infer",
}
# Of a published cell: its document does not say. Such figures have rows of their own.
UNKNOWN = "unknown"
ANY = "any"
NONE = "–"  # a measured cell has no value on the axis


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure; null with the reason."""

    value: float | None = None
    spread: float | None = None  # standard deviation over repeats, of scores
    is_computed: bool = False  # all updates × the mean step of a part
    contention_pct: float | None = None  # of a time: what others took of the CPUs, where it is more than a system's own
    reason: Reason | None = None


class TableColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One device of one profile."""

    profile: str  # label
    device: str
    model: str  # of the device; empty: of a document
    source: str | None  # document of figures that were not measured
    epochs: int | None  # of its fits
    data: list[str]  # that its cells ran on


class SuiteTable(msgspec.Struct, frozen=True, kw_only=True):
    """The whole table."""

    title: str
    axes: list[str]
    figures: list[FigureName]
    rows: list[RowKey]
    columns: list[TableColumn]
    values: list[list[dict[FigureName, Figure]]]  # of row and column
    cpus: list[str]  # models, of the profiles that were measured


class _Column(NamedTuple):
    """One device of one profile."""

    head: TableColumn
    profile: Profile
    cells: dict[RowKey, list[CellResult]]
    values: dict[RowKey, dict[FigureName, Figure]]


def suite_table(
    title: str, axes: Sequence[str], figures: Sequence[FigureName], profiles: Iterable[tuple[str, Profile]]
) -> SuiteTable:
    """Return the table of some profiles.

    Args:
        title: of the suite.
        axes: whose combinations are the rows, in order of their first appearance. One more where cells differ in it.
        figures: under each device.
        profiles: with their labels, measured and published.
    """
    given = [(label, without_operations(profile)) for label, profile in profiles]
    axes = [*axes, *_axes_left_out(given, axes)]
    rows = _rows(given, axes)
    columns = []
    for label, profile in given:
        run = reduce_run(label, profile, details=False) if profile.measured else None  # null: published
        counted = count_cycles(profile)
        for device in sorted({result.cell.device for result in profile.cells}, key=_rank):
            results = [result for result in counted.profile.cells if result.cell.device == device]
            cells = {row: [result for result in results if _row_key(result.cell, axes, profile) == row] for row in rows}
            if any(cells.values()):
                values = {row: _figures(run, counted, of_row, figures) for row, of_row in cells.items()}
                columns.append(_Column(_head(label, device, profile, results), profile, cells, values))
    for column in columns:
        # Gains are over a CPU of the same document, or measured like it.
        cpus = [other for other in columns if other.head.device == "cpu" and other.head.source == column.head.source]
        base = next(iter(cpus), None)
        for row, shown in column.values.items():
            for gain in (name for name in figures if name in GAINS):
                if shown[gain].value is None:
                    shown[gain] = _gain(column, base, row, GAINS[gain])
    return SuiteTable(
        title=title,
        axes=list(axes),
        figures=list(figures),
        rows=rows,
        columns=[column.head for column in columns],
        values=[[column.values[row] for column in columns] for row in rows],
        cpus=list(dict.fromkeys(profile.identity.cpu_model for _, profile in given if profile.measured)),
    )


def _rank(kind: str) -> tuple[bool, int, str]:
    """Order kinds of devices as the kit does, those of another kit last."""
    return kind not in DEVICES, DEVICES[kind].rank if kind in DEVICES else 0, kind


def _rows(profiles: Sequence[tuple[str, Profile]], axes: Sequence[str]) -> list[RowKey]:
    """Return the rows of what was measured, and those that were published of the same, whichever the framework."""
    keys: dict[bool, dict[RowKey, None]] = {True: {}, False: {}}
    for _, profile in profiles:
        keys[profile.measured].update(dict.fromkeys(_row_key(result.cell, axes, profile) for result in profile.cells))
    measured = list(keys[True])

    def is_of(published: RowKey, row: RowKey) -> bool:
        return all(
            axis == "backend" or stated in (ANY, value)
            for axis, stated, value in zip(axes, published, row, strict=True)
        )

    published = [key for key in keys[False] if not measured or any(is_of(key, row) for row in measured)]
    return _in_order(list(dict.fromkeys([*measured, *published])))


def _axes_left_out(profiles: Iterable[tuple[str, Profile]], axes: Sequence[str]) -> list[str]:
    """Return the other axes in which cells of one task differ that would stand in one row of one column."""
    alike: dict[tuple[object, ...], list[Cell]] = {}
    for label, profile in profiles:
        for cell in (result.cell for result in profile.cells):
            alike.setdefault((label, cell.device, cell.task, _row_key(cell, axes, profile)), []).append(cell)
    names = dict.fromkeys([*(name for cells in alike.values() for cell in cells for name in cell.parameters), *AXES])
    return [
        name
        for name in names
        if name not in axes and any(len({cell.value(name) for cell in cells}) > 1 for cells in alike.values())
    ]


def _head(label: str, device: str, profile: Profile, cells: Sequence[CellResult]) -> TableColumn:
    launches = [launch for result in cells for launch in result.launches]
    used = devices_used(profile) if profile.measured else []
    return TableColumn(
        profile=label,
        device=device,
        model=next((of_kind.model for of_kind in used if of_kind.kind == device), ""),
        source=profile.source,
        epochs=next((launch.fit.epochs for launch in launches if launch.fit is not None), None),
        data=sorted({launch.data.name for launch in launches if launch.data is not None}),
    )


def _row_key(cell: Cell, axes: Sequence[str], profile: Profile) -> RowKey:
    # A document's batch of 0, and a parameter that it lacks: it does not say.
    unstated = () if profile.measured else (0, UNKNOWN, None)
    values = (cell.value(axis) for axis in axes)
    return tuple(ANY if value in unstated else NONE if value is None else str(value) for value in values)


def _in_order(rows: Sequence[RowKey]) -> list[RowKey]:
    """Return the rows by their axes from left to right: numbers by size, names as they first appeared, `any` last."""
    names = [list(dict.fromkeys(values)) for values in zip(*rows, strict=True)]

    def place(row: RowKey) -> list[tuple[bool, int]]:
        return [
            (value == ANY, int(value) if value.isdecimal() else known.index(value))
            for value, known in zip(row, names, strict=True)
        ]

    return sorted(rows, key=place)


def _figures(
    run: Run | None, counted: CountedCycles, cells: Sequence[CellResult], figures: Sequence[FigureName]
) -> dict[FigureName, Figure]:
    wanted = dict.fromkeys([*figures, *(GAINS[name] for name in figures if name in GAINS)])
    if run is None:
        known = {figure.figure: Figure(value=figure.value) for result in cells for figure in result.published}
        missing = Figure(reason=reason("not_published"))
    else:
        known = _measured(cells, run, counted)
        failed = next((why for result in cells if (why := first_failure(result.launches)) is not None), None)
        missing = Figure(reason=failed or reason("not_measured"))
    return {name: known.get(name, missing) for name in wanted}


def _measured(cells: Sequence[CellResult], run: Run, counted: CountedCycles) -> dict[FigureName, Figure]:
    """Return the figures of cells that differ in their task alone, with the numbers that `kit compare` shows."""
    figures: dict[FigureName, Figure] = {}
    for result in (result for result in reversed(cells) if result.key in run.cells):
        task, shown = result.cell.task, run.cells[result.key].numbers
        taken_pct = shown.contention_pct
        if task == "fit":
            figures |= _of_fit(result, counted.figure_launches(result), shown)
        elif shown.sample_ns is not None and shown.step_ns is not None:
            of_sample: FigureName = "infer_sample_ns" if task == "infer" else "train_sample_ns"
            figures[of_sample] = Figure(value=shown.sample_ns, contention_pct=taken_pct)
            if task == "train":
                figures["step_ns"] = Figure(value=shown.step_ns, contention_pct=taken_pct)
    return figures


def _of_fit(result: CellResult, launches: Sequence[Launch], shown: Numbers) -> dict[FigureName, Figure]:
    """Return the figures of a fit; `launches`: that its times come from."""
    fits = [(launch, launch.fit) for launch in launches if launch.gave_number and launch.fit is not None]
    numbers = shown.fit
    if numbers is None:
        return {}
    epochs = [time_ns for launch, fit in fits if (time_ns := epoch_ns(launch, fit)) is not None]
    of_time = Figure(is_computed=numbers.is_computed, contention_pct=shown.contention_pct)
    by_name: dict[FigureName, Figure] = {
        "train_time_s": replace(of_time, value=numbers.total_ns / 1e9),
        "epoch_time_s": replace(of_time, value=statistics.fmean(epochs) / 1e9)
        if epochs
        else Figure(reason=reason("one_epoch")),
    }
    if numbers.test_ns is not None:
        by_name["test_time_s"] = replace(of_time, value=numbers.test_ns / 1e9, is_computed=False)
    # Others make a fit longer; they do not change what it learns.
    learnt = [launch.fit for launch in result.launches if launch.failure is None and launch.fit is not None]
    scores = [metrics(fit.confusion) for fit in learnt if fit.confusion is not None]
    if scores:
        by_name["accuracy"] = _over_repeats([score.accuracy for score in scores])
        by_name["precision"] = _over_repeats([score.macro_precision for score in scores])
        by_name["recall"] = _over_repeats([score.macro_recall for score in scores])
        by_name["f1"] = _over_repeats([score.macro_f1 for score in scores])
    else:
        why = next((fit.reason for _, fit in fits if fit.reason is not None), reason("no_classes"))
        by_name |= dict.fromkeys(("accuracy", "precision", "recall", "f1"), Figure(reason=why))
    return by_name


def _over_repeats(values: Sequence[float]) -> Figure:
    return Figure(value=statistics.fmean(values), spread=statistics.stdev(values) if len(values) > 1 else None)


def _gain(column: _Column, base: _Column | None, row: RowKey, time: FigureName) -> Figure:
    figure = column.values[row][time]
    of_base = Figure() if base is None else base.values[row][time]
    if base is column:
        return Figure(reason=reason("gains_are_over_this"))
    if figure.value is None:
        return figure
    if base is None or of_base.value is None:
        return Figure(reason=reason("no_cpu_to_gain_over"))
    different = _blocking(column, base, row, time)
    if different is not None:
        of_cpu, value = (different.values[at][0] or "" for at in (0, -1))
        return Figure(reason=reason("not_like_the_cpus", kind=different.kind, value=value, of_cpu=of_cpu))
    return Figure(
        value=gain_pct(of_base.value, figure.value),
        is_computed=figure.is_computed or of_base.is_computed,
        contention_pct=max(filter(None, (figure.contention_pct, of_base.contention_pct)), default=None),
    )


def _blocking(column: _Column, base: _Column, row: RowKey, time: FigureName) -> Mismatch | None:
    """Return why two measured times are not to be compared."""
    facts, precision = [], ""
    for place in (base, column):
        result = next((result for result in place.cells[row] if result.cell.task == TIMED[time]), None)
        if result is None:
            return None
        of_cell, precision = cell_facts(result.launches, place.profile), result.cell.precision
        # A pass over the test split takes as long after one epoch as after ten.
        facts.append((place.head.profile, of_cell._replace(epochs="") if time == "test_time_s" else of_cell))
    machines = [(place.profile.identity.hardware_sha256, place.head.device) for place in (base, column)]
    like = machines[0] == machines[1]
    return next(iter(blocking(cell_mismatches(facts, precision, like_hardware=like))), None)
