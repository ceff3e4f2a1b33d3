"""The columns of a comparison's table between a row's name and its answer: title, and what a row shows there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kit.compare.rows import GroupRows, Row
from kit.report.plain import NONE, one_line
from kit.report.quantity import duration, energy, number, seconds, size
from kit.stats.rounds import By

PHASES_SHOWN = ("import", "build", "trace", "compile", "first_step")


class Shown(NamedTuple):
    """One column, and what a row has in it."""

    title: str
    show: Callable[[Row], str]
    hides: int = 0  # where the table is too wide, the columns with the smallest number are hidden first


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


STEP = (
    Shown("step", _number("step_ns", duration)),
    Shown("time/sample", _number("sample_ns", duration)),
    Shown("fit", _fit_time),
    Shown("pipeline", _of_fit("pipeline_ratio", lambda ratio: f"{100 * (ratio - 1):+.1f} %")),
    Shown("accuracy %", _score("accuracy", lambda share: f"{100 * share:.2f}")),
    Shown("MSE", _score("mean_squared_error", number)),
    Shown("test pass", _of_fit("test_ns", duration)),
    Shown("samples/s", _number("samples_per_s", number), hides=5),
)
LATENCY = (
    Shown("median", _number("latency_ns", duration)),
    Shown("p95", _number("p95_ns", duration)),
    Shown("p99", _number("p99_ns", duration)),
)
MAIN = (
    Shown("injected", _number("injected_ratio", lambda ratio: f"{100 * (ratio - 1):+.2f} %")),
    Shown("start", _started("start_ns"), hides=2),
    Shown("compile", _started("compile_ns"), hides=1),
    Shown("memory", lambda row: _starred(row, row.numbers.peak_memory_b, size), hides=3),
    Shown("energy/sample", _number("energy_per_sample_j", energy), hides=4),
)
MARKS = Shown("marks", _marks)
WIDE = (
    Shown("ratio of times", _interval),
    Shown("raw step", _number("raw_step_ns", duration)),
    Shown("drift of the machine", _number("drift_pct", lambda pct: f"{pct:.1f} %")),
    Shown("CPUs used", _number("cpus", lambda cpus: f"{cpus:.2f}")),
    Shown("launches", lambda row: str(row.numbers.launches)),
    *(Shown(name.replace("_", " "), _phase(name)) for name in PHASES_SHOWN),
    MARKS,
)


def columns_of(groups: Sequence[GroupRows], *, by: By = "step", wide: bool) -> list[Shown]:
    """Return those that any row has something in, what is judged first; time per sample only where batches differ."""
    rows = [row for group in groups for row in group.rows]
    differ = any(len({row.cell.batch for row in group.rows}) > 1 for group in groups)
    if any(row.cell.task == "fit" for row in rows):
        by = "step"  # a fit is judged by its whole time, whatever the others are judged by
    if wide:
        columns = [*STEP, *LATENCY, *MAIN, *WIDE] if by == "step" else [*LATENCY, *STEP, *MAIN, *WIDE]
    else:
        columns = [*(STEP if by == "step" else LATENCY), *MAIN]
    shown = [column for column in columns if wide or differ or column.title != "time/sample"]
    return [column for column in shown if any(column.show(row) != NONE for row in rows)]
