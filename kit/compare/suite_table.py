"""A suite's own table: samples, published ones too, projected on the suite's axes, with figures instead of verdicts.

                cpu · mine                gpu · five-nets, published
                train time   test time    gain
mlp  torch          4.21 s       93 ms    697 %
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from kit.compare.axes import ANY, AxisValue, Key, project
from kit.compare.ceilings import without_operations
from kit.compare.comparability import blocking, cell_mismatches
from kit.compare.fits import epoch_ns, fits, scored
from kit.compare.metrics import value
from kit.compare.naming import axes_of
from kit.compare.notes import read_run
from kit.compare.ratios import Metric
from kit.compare.runs import Sample
from kit.compare.table import known_mean
from kit.devices import DEVICES
from kit.profile.cell import Task
from kit.profile.fields import Reason, Value, reason
from kit.profile.schema import CellResult, FigureName, Profile

RowKey = tuple[str, ...]
# Each gain, and the time of which it is the CPU's over the device's.
GAINS: dict[FigureName, FigureName] = {
    "train_gain_pct": "train_time_s",
    "test_gain_pct": "test_time_s",
    "train_sample_gain_pct": "train_sample_ns",
    "infer_sample_gain_pct": "infer_sample_ns",
}
# A document does not state these of a cell: a batch of 0, a word, a parameter that the cell lacks.
UNSTATED = (0, "unknown", None)
NONE = "–"  # a measured cell has no value on the axis


def _in_seconds(known_ns: float | None) -> float | None:
    return None if known_ns is None else known_ns / 1e9


def _if_task(task: Task, name: str, *, of_tokens: bool = False) -> Callable[[Sample], Value | None]:
    def read(sample: Sample) -> Value | None:
        is_other = sample.cell.task != task or (of_tokens and value(sample, "tokens") is None)
        return None if is_other else value(sample, name)

    return read


# The columns, by the names that published profiles use. Scores are observed in each repeat of a fit; a gain is made
# from the times of two cells where no document gives it.
_METRICS = [
    Metric("train_time_s", "train time", "time_s", mark="fit_is_computed",
           read=lambda sample: _in_seconds(value(sample, "fit_total_ns"))),
    Metric("test_time_s", "test time", "time_s", read=lambda sample: _in_seconds(value(sample, "fit_test_ns"))),
    Metric("epoch_time_s", "epoch", "time_s", mark="fit_is_computed",
           read=lambda sample: _in_seconds(known_mean(epoch_ns(launch, fit) for launch, fit in fits(sample)))),
    Metric("step_ns", "step", "ns", read=_if_task("train", "step_ns")),
    Metric("train_sample_ns", "train/sample", "ns", read=_if_task("train", "sample_ns")),
    Metric("infer_sample_ns", "infer/sample", "ns", read=_if_task("infer", "sample_ns")),
    Metric("first_token_ns", "first token", "ns", read=_if_task("infer", "latency_ns", of_tokens=True)),
    Metric("input_tokens_per_s", "tokens/s in", "number", read=_if_task("infer", "tokens_per_s")),
    Metric("output_tokens_per_s", "tokens/s out", "number", read=_if_task("decode", "tokens_per_s")),
    Metric("output_token_j", "J/1k tokens out", "per_1k", read=_if_task("decode", "energy_per_token_j")),
    Metric("accuracy", "accuracy %", "score", scored("accuracy")),
    Metric("precision", "precision %", "score", scored("macro_precision")),
    Metric("recall", "recall %", "score", scored("macro_recall")),
    Metric("f1", "F1 %", "score", scored("macro_f1")),
    Metric("train_gain_pct", "train gain", "times_pct"),
    Metric("test_gain_pct", "test gain", "times_pct"),
    Metric("train_sample_gain_pct", "train gain", "times_pct"),
    Metric("infer_sample_gain_pct", "infer gain", "times_pct"),
]  # fmt: skip
SUITE_FIGURES: dict[str, Metric] = {metric.name: metric for metric in _METRICS}


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


# A column, or its place in a row, with the samples there.
SuiteColumn = tuple[TableColumn, list[Sample]]


def suite_table(
    title: str, axes: Sequence[str], figures: Sequence[FigureName], profiles: Iterable[tuple[str, Profile]]
) -> SuiteTable:
    """Return the table of some profiles.

    Args:
        title: of the suite.
        axes: whose combinations are the rows; others follow, in which cells of one row and column would differ.
        figures: under each device.
        profiles: with their labels, measured and published.
    """
    given = [(label, without_operations(profile)) for label, profile in profiles]
    columns = [column for label, profile in given for column in _columns(label, profile)]
    # Names on an axis are in order of their first appearance, those of measured cells before those of published ones.
    samples = sorted((sample for _, column_samples in columns for sample in column_samples), key=_is_published)
    alike = [
        cells for _, column_samples in columns for cells in project(column_samples, ["task", *axes], _stated).values()
    ]
    others = [axis for axis in axes_of([sample.cell for sample in samples]) if axis not in axes]
    axes = [*axes, *(axis for axis in others if any(len(project(cells, [axis], _stated)) > 1 for cells in alike))]
    rows = project(samples, axes, _stated)
    measured = [row for row, cells in rows.items() if not all(map(_is_published, cells))]
    # Published rows are shown if they are of what was measured, whichever the framework.
    rows = {
        row: cells
        for row, cells in rows.items()
        if not measured or any(_is_row_of(row, asked, axes) for asked in measured)
    }
    shown = [sample for cells in rows.values() for sample in cells]
    columns = [column for column in columns if any(sample in shown for sample in column[1])]
    wanted = dict.fromkeys([*figures, *(GAINS[name] for name in figures if name in GAINS)])
    values = []
    for cells in rows.values():
        here = [(head, [sample for sample in cells if sample in column_samples]) for head, column_samples in columns]
        # Gains are over the first CPU of the same document, or of those that were measured.
        bases = {head.source: (head, column_samples) for head, column_samples in reversed(here) if head.device == "cpu"}
        values.append([{name: _figure(name, entry, bases.get(entry[0].source)) for name in wanted} for entry in here])
    return SuiteTable(
        title=title,
        axes=list(axes),
        figures=list(figures),
        rows=[tuple(map(str, row)) for row in rows],
        columns=[head for head, _ in columns],
        values=values,
        cpus=list(dict.fromkeys(profile.identity.cpu_model for _, profile in given if profile.measured)),
    )


def _columns(label: str, profile: Profile) -> Iterator[SuiteColumn]:
    """Yield the devices of a profile in the kit's order, with their samples; a document's cells are in no group."""
    run = read_run(label, profile)
    if profile.measured:
        samples = [run.samples[result.key] for result in profile.cells if result.key in run.samples]
    else:
        samples = [
            Sample(run, result.cell, result.key, result.key, "", "", [], values=_published_values(result))
            for result in profile.cells
        ]
    kinds = sorted({sample.cell.device for sample in samples})
    for device in sorted(kinds, key=lambda kind: [*DEVICES, kind].index(kind)):
        here = [sample for sample in samples if sample.cell.device == device]
        launches = [launch.record for sample in here for launch in sample.launches]
        used = [known.model for known in run.headline.devices if known.kind == device and profile.measured]
        head = TableColumn(
            profile=label,
            device=device,
            model=used[0] if used else "",
            source=profile.source,
            epochs=next((launch.fit.epochs for launch in launches if launch.fit is not None), None),
            data=sorted({launch.data.name for launch in launches if launch.data is not None}),
        )
        yield head, here


def _published_values(result: CellResult) -> dict[str, float]:
    return {figure.figure: figure.value for figure in result.published}


def _is_published(sample: Sample) -> bool:
    return sample.cell_group is None


def _stated(sample: Sample, axis: str) -> AxisValue:
    known = sample.cell.value(axis)
    if _is_published(sample):
        return ANY if known in UNSTATED else known
    return NONE if known is None else known


def _is_row_of(row: Key, asked: Key, axes: Sequence[str]) -> bool:
    return row == asked or all(
        axis == "backend" or stated in (ANY, known) for axis, stated, known in zip(axes, row, asked, strict=True)
    )


def _figure(name: FigureName, column: SuiteColumn, cpu: SuiteColumn | None) -> Figure:
    """Return a figure of a row in a column, with the numbers that `kit compare` shows."""
    head, samples = column
    known = [figure for sample in samples if (figure := _sample_figure(name, sample)) is not None]
    if known or name in GAINS:
        return known[0] if known else _gain(GAINS[name], column, cpu)
    failed = next((sample.failure for sample in samples if sample.failure is not None), None)
    return Figure(reason=failed or reason("not_measured" if head.source is None else "not_published"))


def _sample_figure(name: FigureName, sample: Sample) -> Figure | None:
    """Return a figure of a cell; None where it has none."""
    metric, fitted = SUITE_FIGURES[name], fits(sample)
    if _is_published(sample):
        return Figure(value=sample.values[name]) if name in sample.values else None
    if metric.observe is not None:
        # Others make a fit longer; they do not change what it learns.
        seen = [metric.observe(sample, launch) for launch in sample.launches if launch.record.failure is None]
        repeats = [score for score in seen if score is not None]
        if repeats:
            spread = statistics.stdev(repeats) if len(repeats) > 1 else None
            return Figure(value=statistics.fmean(repeats), spread=spread)
        why = next((fit.reason for _, fit in fitted if fit.reason is not None), reason("no_classes"))
        return Figure(reason=why) if fitted else None
    known: Any = None if metric.read is None else metric.read(sample)
    if known is None:
        return Figure(reason=reason("one_epoch")) if name == "epoch_time_s" and fitted else None
    is_computed = bool(metric.mark and value(sample, metric.mark))
    return Figure(value=known, is_computed=is_computed, contention_pct=value(sample, "contention_pct"))


def _gain(time: FigureName, column: SuiteColumn, cpu: SuiteColumn | None) -> Figure:
    """Return how many times as fast a column is as its CPU: 100 is as fast, 200 twice as fast."""
    if cpu is not None and cpu[0] is column[0]:
        return Figure(reason=reason("gains_are_over_this"))
    figure, base_figure = _figure(time, column, None), Figure() if cpu is None else _figure(time, cpu, None)
    if figure.value is None:
        return figure
    if cpu is None or base_figure.value is None:
        return Figure(reason=reason("no_cpu_to_gain_over"))
    timed = [next(sample for sample in side[1] if _sample_figure(time, sample)) for side in (cpu, column)]
    if not any(map(_is_published, timed)):
        # A pass over the test split takes as long after one epoch as after ten.
        is_test = time == "test_time_s"
        facts = [(side.run.label, side.facts._replace(epochs="") if is_test else side.facts) for side in timed]
        is_like = len({(side.run.hardware, side.cell.device) for side in timed}) == 1
        for different in blocking(cell_mismatches(facts, timed[1].cell.precision, like_hardware=is_like)):
            of_cpu, here = (different.values[at][0] or "" for at in (0, -1))
            return Figure(reason=reason("not_like_the_cpus", kind=different.kind, value=here, of_cpu=of_cpu))
    return Figure(
        value=100 * base_figure.value / figure.value,
        is_computed=figure.is_computed or base_figure.is_computed,
        contention_pct=max(filter(None, (figure.contention_pct, base_figure.contention_pct)), default=None),
    )
