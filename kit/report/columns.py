"""The columns of a comparison's table between a row's name and its answer: title, and what a row shows there.

A metric's column is made from its entry in `kit.compare.metrics`; columns that show more than a metric are here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from kit.compare.comparison import Row
from kit.compare.metrics import METRICS, phases_ns
from kit.report.plain import NONE
from kit.report.quantity import duration, energy, hundredths, number, percent, rate, seconds, size, with_sd
from kit.report.sentences import name_of
from kit.report.table import Cell, Column
from kit.report.verdict_words import with_words
from kit.workloads.device_operations import is_operation

# A longer name of a row, as of a profile, is cut: CSV has it whole.
NAME_MAX = 34
STYLES = {"faster": "green", "slower": "red", "unresolved": "yellow"}
# Letter behind a value by the metric that is true then; a note of the same code explains it.
LETTERS = {"warm_start": " w", "process_shared": "*", "sustained_differs": " †", "is_disturbed": " c"}
# The default table has the letters of what makes a number mean less than it seems to.
ALWAYS_LETTERED = ("sustained_differs", "is_disturbed")
# CPU seconds that follow the step add nothing to it. At 2 a cell keeps two CPUs busy where its baseline keeps one.
CPU_SAYS_MORE = 2.0
# A user waits for a compilation of 5 s at every start; it can decide against a faster step.
COMPILE_SHOWN_NS = 5e9
PHASES_SHOWN = ("import", "build", "trace", "compile", "first_step")
# By `Metric.unit`.
WORDS: Mapping[str, Callable[[Any], str]] = {
    "": str,
    "count": str,
    "ns": duration,
    "s": seconds,
    "b": size,
    "j": energy,
    "number": number,
    "hundredths": "{:.2f}".format,
    "digits": "{:.3g}".format,
    "percent": "{:.0f}".format,
    "pct": "{:.1f} %".format,
    "gain": percent,
    "gain_2": lambda ratio: f"{100 * (ratio - 1):+.2f} %",
    "per_1k": lambda known: number(1000 * known),
    "s_per_1k": lambda known_ns: number(1000 * known_ns / 1e9),
    "time_s": lambda known_s: duration(1e9 * known_s),
    "score": hundredths,
    "times_pct": lambda known: f"{number(known)} %",
}
# Where a table is too wide, the columns with the smallest number are hidden first.
HIDES = {"compile_ns": 1, "cpu_per_sample_ns": 4, "samples_per_s": 5, "energy_per_sample_j": 6, "step_ns": 7}
# Without --wide a platform shows what is judged, and joules and costs where they are known.
OF_A_PLATFORM = ("step_ns", "fit_total_ns", "latency_ns", "sample_ns", "energy_per_sample_j", "cost_per_million")


def cell_of(column: Column, row: Row, style: str, *, wide: bool) -> Cell:
    """Return what a row shows in a column, with the letter of its metric where that is true of the row.

    Without `wide`, only letters of what makes a number mean less than it seems to, and of the metric that is compared.
    """
    words = column.read(row)
    mark = METRICS[column.name].mark if column.name in METRICS and words is not None else ""
    if mark and (wide or mark in ALWAYS_LETTERED or column.name == row.metric) and row.value(mark):
        return Cell(f"{words}{LETTERS[mark]}", style, mark=mark)
    return Cell(NONE if words is None else words, style)


def _is_network(row: Row) -> bool:
    return not is_operation(row.cell)


def _metric(name: str, applies: Callable[[Row], bool] = lambda _: True, *, is_wide: bool | None = None) -> Column:
    """Return the column of a metric; of rows to which it does not apply a dash."""
    metric = METRICS[name]

    def words(row: Row) -> str | None:
        known = row.value(name) if applies(row) else None
        return None if known is None else WORDS[metric.unit](known)

    return Column(metric.title, words, name, is_wide=metric.shown != "table" if is_wide is None else is_wide)


def _interval(row: Row) -> str | None:
    known = row.versus if METRICS[row.metric].is_time else None
    if known is None or known.low is None or known.high is None or known.contention_pct is not None:
        return None
    ratio = known.ratio if known.ratio is not None else known.mean_log
    return f"{ratio:.3f} [{known.low:.3f}, {known.high:.3f}]"


def _observed(row: Row) -> str | None:
    shown = []
    for mark in row.marks:
        count = f" {mark.values['launches']}/{row.value('launches')}" if "launches" in mark.values else ""
        shown.append(f"{name_of(mark.code)}{count}")
    return ", ".join(shown) or None


def _phase(name: str) -> Column:
    def words(row: Row) -> str | None:
        known = phases_ns(row.samples[0].good) if len(row.samples) == 1 else {}
        return duration(known[name]) if name in known else None

    return Column(f"{name.replace('_', ' ')} phase", words, is_wide=True)


def _score(row: Row, kind: str, words: Callable[[float], str]) -> str | None:
    """Return the mean over repeats and its spread of a fit that is scored so."""
    known = row.value("fit_score") if row.value("fit_metric") == kind else None
    return None if known is None else with_sd(known, row.value("fit_score_sd"), words)


def _rate(row: Row, *, is_network: bool) -> str | None:
    reached, unit = row.value("reach_rate"), row.value("reach_unit")
    is_known = reached is not None and unit is not None
    return rate(reached, unit) if is_known and _is_network(row) == is_network else None


def _bound(row: Row) -> str | None:
    """Return ``compute, 31 % of 182 GFLOP/s (matmul 1024, float32)``."""
    names = ("bound", "share_pct", "ceiling", "ceiling_unit", "operation")
    bound, share_pct, ceiling, unit, operation = (row.value(f"reach_{name}") for name in names)
    if bound is None or share_pct is None:
        return None
    words = f"{bound} {share_pct:.{0 if share_pct >= 10 else 1}f} %"  # noqa: PLR2004
    if ceiling is None or unit is None:
        return words
    ceiling_words = f": {duration(ceiling)}" if bound == "dispatch" else f" of {rate(ceiling, unit)}"
    return f"{words}{ceiling_words} ({operation})"


def _share(row: Row, part: str) -> str | None:
    """Return a part of `Row.scaling`: ``47 % [45, 49]``."""
    if (share := getattr(row.scaling, part, None)) is None:
        return None
    ends = "" if share.low is None or share.high is None else f" [{100 * share.low:.0f}, {100 * share.high:.0f}]"
    return f"{100 * share.value:.0f} %{ends}"


def _fit(row: Row) -> str | None:
    known = row.value("fit_total_ns")
    return None if known is None else f"{'≈ ' if row.value('fit_is_computed') else ''}{duration(known)}"


def _joules(row: Row) -> str | None:
    """Return joules per 1,000 samples, and how they compare with the baseline's."""
    known = row.value("energy_per_sample_j")
    if known is None or row.energy_versus is None:
        return None if known is None else number(1000 * known)
    return f"{number(1000 * known)}, {with_words(row.energy_versus, METRICS['energy_per_sample_j'])}"


def _net(row: Row) -> str | None:
    known, error = row.value("energy_net_per_sample_j"), row.value("energy_net_error_j")
    return None if known is None or error is None else f"{number(1000 * known)} ± {number(1000 * error, 2)}"


def _method(row: Row) -> str | None:
    """Return by what the joules were measured."""
    tier, method, error = (row.value(f"energy_{name}") for name in ("tier", "method", "error_share"))
    within = "" if error is None else f"±{100 * error:.1f} %"
    listed = ", ".join(name_of(part) for part in (tier, method, within) if part)
    return (listed or "not recorded") if row.value("energy_launches") else None


def _is_on_cpu(row: Row) -> bool:
    return row.cell.device == "cpu" and _is_network(row)


STEP = (
    _metric("step_ns"),
    Column("rate", partial(_rate, is_network=False)),
    _metric("empty_wait_ns", lambda row: is_operation(row.cell)),
    _metric("sample_ns", _is_network),
    Column("fit", _fit, name="fit_total_ns"),
    _metric("fit_pipeline_ratio"),
    Column("accuracy %", partial(_score, kind="accuracy", words=hundredths), name="fit_score"),
    Column("MSE", partial(_score, kind="mean_squared_error", words=number), name="fit_score"),
    _metric("fit_test_ns"),
    _metric("samples_per_s", _is_network),
    *map(_metric, ("tokens_per_s", "token_ns")),
)
SCALING = (
    Column("efficiency", partial(_share, part="efficiency"), "efficiency"),
    Column("all-reduce", partial(_share, part="all_reduce"), "all_reduce"),
)
LATENCY = tuple(_metric(name, is_wide=False) for name in ("latency_ns", "p95_ns", "p99_ns"))
MAIN = (
    *map(_metric, ("injected_ratio", "start_ns", "compile_ns", "peak_memory_b")),
    Column("J/1k", _joules, name="energy_per_sample_j"),
    *map(_metric, ("energy_with_package_per_sample_j", "utilization_pct")),
    _metric("cpu_per_sample_ns", _is_on_cpu),
    *map(_metric, ("energy_per_token_j", "cost_per_million")),
)
OBSERVED = Column("observed", _observed, right=False)
WIDE = (
    Column("net J/1k", _net),
    *map(_metric, ("energy_per_step_j", "energy_power_w", "energy_power_max_w", "energy_idle_w")),
    *map(_metric, ("energy_delay_product_js", "energy_compile_j", "energy_epoch_j", "energy_fit_j")),
    Column("joules by", _method),
    Column("time ÷ baseline's", _interval),
    Column("rate", partial(_rate, is_network=True)),
    Column("bound", _bound),
    *map(_metric, ("raw_step_ns", "sustained_ns", "drift_pct", "cpus", "launches", "cycles")),
    *map(_phase, PHASES_SHOWN),
)
PLACED = {column.name for column in (*STEP, *LATENCY, *MAIN, *WIDE)}


def columns_of(groups: Sequence[Sequence[Row]], by: str, *, wide: bool, is_platform: bool = False) -> list[Column]:
    """Return the columns in which any row has something, what is judged (`by`) first; without `wide` those that answer.

    Time per sample is one of them where batches differ; the step's is then hidden before names are cut. On platforms,
    which stand next to each other, no column is hidden.
    """
    rows = [row for group in groups for row in group]
    differ = any(len({row.cell.batch for row in group}) > 1 for group in groups)
    # A fit is judged by its whole time, whatever the others are judged by.
    is_by_latency = by == "latency_ns" and not any(row.cell.task == "fit" for row in rows)
    first, second = (LATENCY, STEP) if is_by_latency else (STEP, LATENCY)
    if wide:
        others = [_metric(name) for name, metric in METRICS.items() if metric.title and name not in PLACED]
        columns = [*first, *second, *SCALING, *MAIN, *WIDE, *others, OBSERVED]
    else:
        says = {
            "sample_ns": differ,
            "compile_ns": any((row.value("compile_ns") or 0) >= COMPILE_SHOWN_NS for row in rows),
            "cpu_per_sample_ns": all(row.value("energy_per_sample_j") is None for row in rows)
            and _cpu_says_more(groups),
            by: True,
        }
        columns = [
            column
            for column in (*first, *SCALING, *MAIN)
            if (not column.is_wide or column.name == by) and says.get(column.name, True)
        ]
        columns.append(_metric(by, is_wide=False))
    columns = [column for column in columns if any(column.read(row) is not None for row in rows)]
    if not wide and sum(column.name == by for column in columns) > 1:
        columns.pop()
    if is_platform:
        return [column for column in columns if wide or column.name in (*OF_A_PLATFORM, by)] or [*STEP[:1]]
    # With unlike batches the time per sample is what is compared by step.
    hides = HIDES | ({} if differ and by == "step_ns" else {"step_ns": 0, by: 0})
    return [column._replace(hides=hides.get(column.name, 0)) for column in columns]


def _cpu_says_more(groups: Sequence[Sequence[Row]]) -> bool:
    """Whether the ratio of CPU seconds to the baseline's is far from the ratio of times, in some row."""
    for group in groups:
        cpus = {id(row): (row.value("cpu_per_sample_ns") or 0) / (row.value("sample_ns") or 1) for row in group}
        bases = {row.member: cpus[id(row)] for row in group if row.is_baseline}
        only = next(iter(bases.values())) if len(bases) == 1 else 0
        for row in filter(_is_on_cpu, group):
            cpu, base = cpus[id(row)], bases.get(row.member, only)
            if cpu and base and max(cpu / base, base / cpu) > CPU_SAYS_MORE:
                return True
    return False
