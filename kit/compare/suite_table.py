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
from kit.compare.comparability import blocking, cell_mismatches
from kit.compare.metrics import epoch_ns, fits, value
from kit.compare.notes import devices_used
from kit.compare.sample import Sample, read_run
from kit.devices.catalog import DEVICES
from kit.profile.cell import AXES, Cell, Task
from kit.profile.reason import Reason, reason
from kit.profile.schema import FigureName, Profile
from kit.stats.scores import scores

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
    hardware: tuple[str, str]  # of the machine, and the device
    samples: dict[RowKey, dict[Task, Sample]]  # measured, by task
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
    wanted = dict.fromkeys([*figures, *(GAINS[name] for name in figures if name in GAINS)])
    for label, profile in given:
        run = read_run(label, profile) if profile.measured else None  # null: published
        for device in sorted({result.cell.device for result in profile.cells}, key=_rank):
            results = [result for result in profile.cells if result.cell.device == device]
            samples: dict[RowKey, dict[Task, Sample]] = {row: {} for row in rows}
            values: dict[RowKey, dict[FigureName, Figure]] = {}
            for row in rows:
                cells = [result for result in results if _row_key(result.cell, axes, profile) == row]
                known = {of.figure: Figure(value=of.value) for result in cells for of in result.published}
                missing = Figure(reason=reason("not_published"))
                if run is not None:
                    here = [run.samples[result.key] for result in cells if result.key in run.samples]
                    samples[row] = {sample.cell.task: sample for sample in reversed(here)}
                    known = {name: of for sample in reversed(here) for name, of in _measured(sample).items()}
                    failed = next((sample.failure for sample in here if sample.failure is not None), None)
                    missing = Figure(reason=failed or reason("not_measured"))
                values[row] = {name: known.get(name, missing) for name in wanted}
            if any(_row_key(result.cell, axes, profile) in values for result in results):
                launches = [launch for result in results for launch in result.launches]
                used = devices_used(profile) if profile.measured else []
                head = TableColumn(
                    profile=label,
                    device=device,
                    model=next((of_kind.model for of_kind in used if of_kind.kind == device), ""),
                    source=profile.source,
                    epochs=next((launch.fit.epochs for launch in launches if launch.fit is not None), None),
                    data=sorted({launch.data.name for launch in launches if launch.data is not None}),
                )
                columns.append(_Column(head, (profile.identity.hardware_sha256, device), samples, values))
    for column in columns:
        # Gains are over a CPU of the same document, or measured like it.
        source = column.head.source
        base = next((of for of in columns if of.head.device == "cpu" and of.head.source == source), None)
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
    """Return the rows of what was measured, and those that were published of the same, whichever the framework.

    They are ordered by their axes from left to right: numbers by size, names as they first appeared, `any` last.
    """
    keys: dict[bool, dict[RowKey, None]] = {True: {}, False: {}}
    for _, profile in profiles:
        keys[profile.measured].update(dict.fromkeys(_row_key(result.cell, axes, profile) for result in profile.cells))

    def is_of(published: RowKey, row: RowKey) -> bool:
        return all(
            axis == "backend" or stated in (ANY, known)
            for axis, stated, known in zip(axes, published, row, strict=True)
        )

    published = [key for key in keys[False] if not keys[True] or any(is_of(key, row) for row in keys[True])]
    rows = list(dict.fromkeys([*keys[True], *published]))
    names = [list(dict.fromkeys(values)) for values in zip(*rows, strict=True)]

    def order(row: RowKey) -> list[tuple[bool, int]]:
        return [
            (of_axis == ANY, int(of_axis) if of_axis.isdecimal() else known.index(of_axis))
            for of_axis, known in zip(row, names, strict=True)
        ]

    return sorted(rows, key=order)


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


def _row_key(cell: Cell, axes: Sequence[str], profile: Profile) -> RowKey:
    # A document's batch of 0, and a parameter that it lacks: it does not say.
    unstated = () if profile.measured else (0, UNKNOWN, None)
    values = (cell.value(axis) for axis in axes)
    return tuple(ANY if known in unstated else NONE if known is None else str(known) for known in values)


def _measured(sample: Sample) -> dict[FigureName, Figure]:
    """Return the figures of a cell, with the numbers that `kit compare` shows."""
    of_time, task = Figure(contention_pct=value(sample, "contention_pct")), sample.cell.task
    if task != "fit":
        if value(sample, "sample_ns") is None:
            return {}
        of_sample: FigureName = "infer_sample_ns" if task == "infer" else "train_sample_ns"
        step = {"step_ns": replace(of_time, value=value(sample, "step_ns"))} if task == "train" else {}
        return {of_sample: replace(of_time, value=value(sample, "sample_ns")), **step}  # type: ignore[dict-item]
    if value(sample, "fit_total_ns") is None:
        return {}
    epochs = [time_ns for launch, fit in fits(sample) if (time_ns := epoch_ns(launch, fit)) is not None]
    of_fit = replace(of_time, is_computed=value(sample, "fit_is_computed"))
    by_name: dict[FigureName, Figure] = {
        "train_time_s": replace(of_fit, value=value(sample, "fit_total_ns") / 1e9),
        "epoch_time_s": replace(of_fit, value=statistics.fmean(epochs) / 1e9)
        if epochs
        else Figure(reason=reason("one_epoch")),
    }
    if (test_ns := value(sample, "fit_test_ns")) is not None:
        by_name["test_time_s"] = replace(of_time, value=test_ns / 1e9)
    # Others make a fit longer; they do not change what it learns.
    learnt = [launch.fit for launch in sample.launches if launch.failure is None and launch.fit is not None]
    scored = [scores(fit.confusion) for fit in learnt if fit.confusion is not None]
    why = next((fit.reason for _, fit in fits(sample) if fit.reason is not None), reason("no_classes"))
    names: tuple[FigureName, ...] = ("accuracy", "precision", "recall", "f1")
    for name, of_score in zip(names, ("accuracy", "macro_precision", "macro_recall", "macro_f1"), strict=True):
        repeats = [getattr(known, of_score) for known in scored]
        spread = statistics.stdev(repeats) if len(repeats) > 1 else None
        by_name[name] = Figure(value=statistics.fmean(repeats), spread=spread) if repeats else Figure(reason=why)
    return by_name


def _gain(column: _Column, base: _Column | None, row: RowKey, time: FigureName) -> Figure:
    """Return how many times as fast the column is as its CPU: 100 is as fast, 200 twice as fast."""
    figure = column.values[row][time]
    of_base = Figure() if base is None else base.values[row][time]
    if base is column:
        return Figure(reason=reason("gains_are_over_this"))
    if figure.value is None:
        return figure
    if base is None or of_base.value is None:
        return Figure(reason=reason("no_cpu_to_gain_over"))
    sides = [(side.head.profile, side.samples[row].get(TIMED[time])) for side in (base, column)]
    measured = [(profile, sample) for profile, sample in sides if sample is not None]
    if len(measured) == len(sides):
        # A pass over the test split takes as long after one epoch as after ten.
        of_test = time == "test_time_s"
        facts = [(of, known.facts._replace(epochs="") if of_test else known.facts) for of, known in measured]
        is_like, precision = column.hardware == base.hardware, measured[1][1].cell.precision
        for different in blocking(cell_mismatches(facts, precision, like_hardware=is_like)):
            of_cpu, here = (different.values[at][0] or "" for at in (0, -1))
            return Figure(reason=reason("not_like_the_cpus", kind=different.kind, value=here, of_cpu=of_cpu))
    return Figure(
        value=100 * of_base.value / figure.value,
        is_computed=figure.is_computed or of_base.is_computed,
        contention_pct=max(filter(None, (figure.contention_pct, of_base.contention_pct)), default=None),
    )
