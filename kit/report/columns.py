"""The columns of a comparison's table: title, and what a row shows there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kit.compare.rows import Comparison, GroupRows, Row
from kit.report.answer import answer
from kit.report.plain import NONE, one_line
from kit.report.quantity import duration, energy, number, seconds, size
from kit.stats.rounds import By

PHASES_SHOWN = ("import", "build", "trace", "compile", "first_step")


class Column(NamedTuple):
    """One column; numbers are aligned at their right end."""

    title: str
    show: Callable[[Row], str]
    right: bool = True


def _number(name: str, words: Callable[[float], str]) -> Callable[[Row], str]:
    def show(row: Row) -> str:
        value: float | None = getattr(row.numbers, name)
        return NONE if value is None else words(value)

    return show


def _starred(row: Row, value: float | None, words: Callable[[float], str]) -> str:
    """Return a value of the whole process, with a star where it held other cells, too."""
    return NONE if value is None else f"{words(value)}{'*' if row.numbers.process_shared else ''}"


def _started(name: str) -> Callable[[Row], str]:
    """Return a part of the start; marked where the process had run another program before."""

    def show(row: Row) -> str:
        value_ns: float | None = getattr(row.numbers, name)
        return NONE if value_ns is None else f"{seconds(value_ns)}{' w' if row.numbers.warm_start else ''}"

    return show


def _interval(row: Row) -> str:
    versus = row.versus
    if versus is None or versus.low is None or versus.high is None:
        return NONE
    return f"{versus.ratio:.3f} [{versus.low:.3f}, {versus.high:.3f}]"


def _marks(row: Row) -> str:
    launches = row.numbers.launches
    shown = []
    for mark in row.marks:
        of = f" {mark.values['launches']}/{launches}" if "launches" in mark.values else ""
        shown.append(one_line(f"{mark.code.replace('_', ' ')}{of}"))
    return ", ".join(shown) or NONE


def _phase(name: str) -> Callable[[Row], str]:
    return lambda row: duration(row.numbers.phases_ns[name]) if name in row.numbers.phases_ns else NONE


def _of_fit(name: str, words: Callable[[float], str]) -> Callable[[Row], str]:
    def show(row: Row) -> str:
        value = None if row.numbers.fit is None else getattr(row.numbers.fit, name)
        return NONE if value is None else words(value)

    return show


def _fit_time(row: Row) -> str:
    fit = row.numbers.fit
    return NONE if fit is None else f"{'≈ ' if fit.is_computed else ''}{duration(fit.total_ns)}"


def _score(metric: str, words: Callable[[float], str]) -> Callable[[Row], str]:
    """Return the mean over repeats and its spread, of fits that are scored so."""

    def show(row: Row) -> str:
        fit = row.numbers.fit
        if fit is None or fit.score is None or fit.metric != metric:
            return NONE
        return words(fit.score) if fit.score_sd is None else f"{words(fit.score)} (sd {words(fit.score_sd)})"

    return show


NAME = Column("", lambda row: one_line(row.name), right=False)
STEP = (
    Column("step", _number("step_ns", duration)),
    Column("time/sample", _number("sample_ns", duration)),
    Column("fit", _fit_time),
    Column("pipeline", _of_fit("pipeline_ratio", lambda ratio: f"{100 * (ratio - 1):+.1f} %")),
    Column("accuracy %", _score("accuracy", lambda share: f"{100 * share:.2f}")),
    Column("MSE", _score("mean_squared_error", number)),
    Column("test pass", _of_fit("test_ns", duration)),
    Column("samples/s", _number("samples_per_s", number)),
)
LATENCY = (
    Column("median", _number("latency_ns", duration)),
    Column("p95", _number("p95_ns", duration)),
    Column("p99", _number("p99_ns", duration)),
)
MAIN = (
    Column("start", _started("start_ns")),
    Column("compile", _started("compile_ns")),
    Column("memory", lambda row: _starred(row, row.numbers.peak_memory_b, size)),
    Column("energy/sample", _number("energy_per_sample_j", energy)),
)
ANSWER = Column("against", answer, right=False)
WIDE = (
    Column("ratio of times", _interval),
    Column("raw step", _number("raw_step_ns", duration)),
    Column("drift of the machine", _number("drift_pct", lambda pct: f"{pct:.1f} %")),
    Column("CPUs used", _number("cpus", lambda cpus: f"{cpus:.2f}")),
    Column("launches", lambda row: str(row.numbers.launches)),
    *(Column(name.replace("_", " "), _phase(name)) for name in PHASES_SHOWN),
    Column("marks", _marks, right=False),
)


def alike(comparison: Comparison) -> list[list[GroupRows]]:
    """Return the groups of steps and those of fits, which have other columns."""
    of_fits = [any(row.cell.task == "fit" for row in group.rows) for group in comparison.groups]
    parted = [
        [group for group, own in zip(comparison.groups, of_fits, strict=True) if own is wanted]
        for wanted in (False, True)
    ]
    return [own for own in parted if own]


def columns_of(groups: Sequence[GroupRows], *, by: By = "step", wide: bool) -> list[Column]:
    """Return those that any row has something in, what is judged first; time per sample only where batches differ."""
    rows = [row for group in groups for row in group.rows]
    differ = any(len({row.cell.batch for row in group.rows}) > 1 for group in groups)
    if any(row.cell.task == "fit" for row in rows):
        by = "step"  # a fit is judged by its whole time, whatever the others are judged by
    if wide:
        between = [*STEP, *LATENCY, *MAIN, *WIDE] if by == "step" else [*LATENCY, *STEP, *MAIN, *WIDE]
    else:
        between = [*(STEP if by == "step" else LATENCY), *MAIN]
    shown = [column for column in between if wide or differ or column.title != "time/sample"]
    return [NAME, *(column for column in shown if any(column.show(row) != NONE for row in rows)), ANSWER]


def titles_of(columns: Sequence[Column], group: GroupRows) -> list[str]:
    """Return the titles over one group: its own first, and whom it is compared with last."""
    return [
        " · ".join(map(one_line, group.title)),
        *(column.title for column in columns[1:-1]),
        f"{ANSWER.title} {one_line(group.baseline or '')}" if group.baseline and len(group.rows) > 1 else "",
    ]
