"""The columns of a comparison's table between a row's name and its answer: title, and what a row shows there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from statistics import fmean
from typing import Any, NamedTuple

from kit.compare.rows import Cost, EnergyNumbers, GroupRows, Row, Share
from kit.report.answer import LOPSIDED, less_or_more
from kit.report.plain import NONE, one_line
from kit.report.quantity import duration, energy, hundredths, number, percent, rate, seconds, size, with_sd
from kit.stats.rounds import By
from kit.workloads.operations import is_operation

# A longer name of a row, as of a profile, is cut: CSV has it whole.
NAME_MAX = 34
VERDICT_STYLES = {"faster": "green", "slower": "red", "same": "", "unresolved": "yellow"}
# A fact of a row, and the letter behind the values that it concerns; a note of the same code explains the letter.
WARM, SHARED, SUSTAINED = ("warm_start", " w"), ("process_shared", "*"), ("sustained_differs", " †")
DISTURBED = ("is_disturbed", " c")
# CPU seconds that follow the step add nothing to it. At 2 a cell keeps two CPUs busy where its baseline keeps one.
CPU_SAYS_MORE = 2.0
# A user waits for a compilation of 5 s at every start; it can decide against a faster step.
COMPILE_SHOWN_NS = 5e9
# Below the tables, for each column that is shown, unless a note has it with this run's numbers.
MEANINGS = {
    "step": "time per batch",
    "fit": "training time without the first step",
    "compile": "trace, compile and first step",
    "J/1k": "joules per 1,000 samples",
    "injected": "delay that the self-test adds",
}
PHASES_SHOWN = ("import", "build", "trace", "compile", "first_step")


class Shown(NamedTuple):
    """One column, and what a row shows in it."""

    title: str
    value: Callable[[Row], Any]  # null: the row has none
    words: Callable[[Any], str] = str
    hides: int = 0  # where the table is too wide, the columns with the smallest number are hidden first
    flag: tuple[str, str] | None = None  # a field of the numbers, and what stands behind the value where it is true
    is_wide: bool = False  # only --wide has it

    def show(self, row: Row) -> str:
        """Return the words of a row, a dash where it has no value."""
        value = self.value(row)
        if value is None:
            return NONE
        return f"{self.words(value)}{self.flag[1] if self.flag and getattr(row.numbers, self.flag[0]) else ''}"


def _interval(row: Row) -> str | None:
    versus = row.versus
    if versus is None or versus.low is None or versus.high is None or versus.contention_pct is not None:
        return None
    return f"{versus.ratio:.3f} [{versus.low:.3f}, {versus.high:.3f}]"


def _observed(row: Row) -> str | None:
    shown = []
    for mark in row.marks:
        of = f" {mark.values['launches']}/{row.numbers.launches}" if "launches" in mark.values else ""
        words = mark.code.replace("_", " ").replace("two modes", "bimodal").replace("board", "device")
        shown.append(one_line(f"{words}{of}"))
    return ", ".join(shown) or None


def _phase(name: str) -> Shown:
    return Shown(f"{name.replace('_', ' ')} phase", lambda row: row.numbers.phases_ns.get(name), duration)


def _cost(cost: Cost) -> str:
    if cost.low is None or cost.high is None:
        return number(cost.per_million)
    below, above = cost.per_million - cost.low, cost.high - cost.per_million
    if max(below, above) > LOPSIDED * min(below, above):
        return f"{number(cost.per_million)} [{number(cost.low)}, {number(cost.high)}]"
    return f"{number(cost.per_million)} ± {number((above + below) / 2, 2)}"


def _of_fit(name: str) -> Callable[[Row], float | None]:
    return lambda row: None if row.numbers.fit is None else getattr(row.numbers.fit, name)


def _score(title: str, metric: str, words: Callable[[float], str]) -> Shown:
    """Return the column of the mean over repeats and its spread, of fits that are scored so."""

    def score(row: Row) -> str | None:
        fit = row.numbers.fit
        if fit is None or fit.score is None or fit.metric != metric:
            return None
        return with_sd(fit.score, fit.score_sd, words)

    return Shown(title, score)


def _rate(row: Row) -> str | None:
    reach = row.numbers.reach
    return None if reach is None or reach.rate is None or reach.unit is None else rate(reach.rate, reach.unit)


def _bound(row: Row) -> str | None:
    """Return ``compute, 31 % of 182 GFLOP/s (matmul 1024, float32)``."""
    reach = row.numbers.reach
    if reach is None or reach.bound is None or reach.share_pct is None:
        return None
    words = f"{reach.bound} {reach.share_pct:.{0 if reach.share_pct >= 10 else 1}f} %"  # noqa: PLR2004
    if reach.ceiling is None or reach.ceiling_unit is None:
        return words
    if reach.bound == "dispatch":
        return f"{words}: {duration(reach.ceiling)} ({reach.operation})"
    return f"{words} of {rate(reach.ceiling, reach.ceiling_unit)} ({reach.operation})"


def _share(share: Share | None) -> str | None:
    """Return ``47 % [45, 49]``."""
    if share is None:
        return None
    ends = "" if share.low is None or share.high is None else f" [{100 * share.low:.0f}, {100 * share.high:.0f}]"
    return f"{100 * share.value:.0f} %{ends}"


def _joules(row: Row) -> str:
    """Return joules per 1,000 samples, and how they compare with the baseline's."""
    versus, shown = row.energy_versus, number(1000 * (row.numbers.energy_per_sample_j or 0.0))
    return shown if versus is None else f"{shown}, {less_or_more(versus)}"


def _utilization(row: Row) -> float | None:
    """Return the share of the long block in which a kernel ran on the boards of the cell; no more than that."""
    shares = [of.mean for name, of in row.numbers.sensors.items() if name.endswith(".utilization") and of.unit == "%"]
    return fmean(shares) if shares and row.cell.device != "cpu" else None


def _cpu_seconds(row: Row) -> float | None:
    """Return CPU seconds per 1,000 samples."""
    used_ns = row.numbers.cpu_per_sample_ns
    has_samples = row.cell.device == "cpu" and not is_operation(row.cell)
    return 1000 * used_ns / 1e9 if used_ns is not None and has_samples else None


def _drawn(show: Callable[[EnergyNumbers], str | None]) -> Callable[[Row], str | None]:
    return lambda row: None if row.numbers.energy is None else show(row.numbers.energy)


def _net(of: EnergyNumbers) -> str | None:
    if of.net_per_sample_j is None or of.net_error_j is None:
        return None
    return f"{number(1000 * of.net_per_sample_j)} ± {number(1000 * of.net_error_j, 2)}"


def _known(name: str, words: Callable[[float], str]) -> Callable[[Row], str | None]:
    return _drawn(lambda of: None if getattr(of, name) is None else words(getattr(of, name)))


def _method(of: EnergyNumbers) -> str:
    error = "" if of.error_share is None else f"±{100 * of.error_share:.1f} %"
    return ", ".join(part.replace("_", " ") for part in (of.tier, of.method, error) if part) or "not recorded"


STEP = (
    Shown("step", attrgetter("numbers.step_ns"), duration, flag=DISTURBED),
    Shown("rate", lambda row: _rate(row) if is_operation(row.cell) else None),
    Shown(
        "empty wait", lambda row: row.numbers.empty_wait_ns if is_operation(row.cell) else None, duration, is_wide=True
    ),
    Shown("time/sample", lambda row: None if is_operation(row.cell) else row.numbers.sample_ns, duration),
    Shown("fit", attrgetter("numbers.fit"), lambda fit: f"{'≈ ' if fit.is_computed else ''}{duration(fit.total_ns)}"),
    Shown("pipeline", _of_fit("pipeline_ratio"), percent, is_wide=True),
    _score("accuracy %", "accuracy", hundredths),
    _score("MSE", "mean_squared_error", number),
    Shown("test pass", _of_fit("test_ns"), duration, is_wide=True),
    Shown("samples/s", lambda row: None if is_operation(row.cell) else row.numbers.samples_per_s, number, hides=5),
)
SCALING = (
    Shown("efficiency", lambda row: row.scaling and _share(row.scaling.efficiency)),
    Shown("all-reduce", lambda row: row.scaling and _share(row.scaling.all_reduce)),
)
LATENCY = (
    Shown("median", attrgetter("numbers.latency_ns"), duration, flag=DISTURBED),
    Shown("p95", attrgetter("numbers.p95_ns"), duration),
    Shown("p99", attrgetter("numbers.p99_ns"), duration),
)
WITH_PACKAGE = Shown(
    "device + package",
    lambda row: row.numbers.energy and row.numbers.energy.with_package_per_sample_j,
    lambda joules_j: number(1000 * joules_j),
    is_wide=True,
)
COST = Shown("cost/1M", attrgetter("cost"), _cost)
MAIN = (
    Shown("injected", attrgetter("numbers.injected_ratio"), lambda ratio: f"{100 * (ratio - 1):+.2f} %"),
    Shown("start", attrgetter("numbers.start_ns"), seconds, flag=WARM, is_wide=True),
    Shown("compile", attrgetter("numbers.compile_ns"), seconds, hides=1, flag=WARM),
    Shown("peak memory", attrgetter("numbers.peak_memory_b"), size, flag=SHARED, is_wide=True),
    Shown(
        "J/1k",
        lambda row: None if row.numbers.energy_per_sample_j is None else row,
        _joules,
        hides=6,
        flag=SUSTAINED,
    ),
    WITH_PACKAGE,
    Shown("util %", _utilization, "{:.0f}".format, is_wide=True),
    Shown("CPU s/1k", _cpu_seconds, number, hides=4),
    COST,
)
OBSERVED = Shown("observed", _observed)
ENERGY = (
    Shown("net J/1k", _drawn(_net)),
    Shown("J/step", _known("per_step_j", energy)),
    Shown("W", _known("power_w", number)),
    Shown("peak W", _known("power_max_w", number)),
    Shown("idle W", _known("idle_w", number)),
    Shown("J·s/step", _known("delay_product_js", "{:.3g}".format)),
    Shown("compile J", _known("compile_j", number)),
    Shown("J/epoch", _known("epoch_j", number)),
    Shown("J/fit", _known("fit_j", number)),
    Shown("joules by", _drawn(_method)),
)
WIDE = (
    Shown("time ÷ baseline's", _interval),
    Shown("rate", lambda row: None if is_operation(row.cell) else _rate(row)),
    Shown("bound", _bound),
    Shown("raw step", attrgetter("numbers.raw_step_ns"), duration),
    Shown("sustained step", attrgetter("numbers.sustained_ns"), duration),
    Shown("drift of the machine", attrgetter("numbers.drift_pct"), "{:.1f} %".format),
    Shown("CPUs used", attrgetter("numbers.cpus"), "{:.2f}".format),
    Shown("launches", attrgetter("numbers.launches")),
    Shown("cycles", attrgetter("numbers.cycles")),
    *map(_phase, PHASES_SHOWN),
    OBSERVED,
)


def columns_of(groups: Sequence[GroupRows], *, by: By = "step", wide: bool) -> list[Shown]:
    """Return the columns in which any row has something, what is judged first; without `wide` those that answer.

    Time per sample is one of them where batches differ; the step's is then hidden before names are cut.
    """
    rows = [row for group in groups for row in group.rows]
    differ = any(len({row.cell.batch for row in group.rows}) > 1 for group in groups)
    if any(row.cell.task == "fit" for row in rows):
        by = "step"  # a fit is judged by its whole time, whatever the others are judged by
    first, second = (STEP, LATENCY) if by == "step" else (LATENCY, STEP)
    if wide:
        columns = [*first, *second, *SCALING, *MAIN, *ENERGY, *WIDE]
    else:
        says = {
            "time/sample": differ,
            "compile": any((row.numbers.compile_ns or 0) >= COMPILE_SHOWN_NS for row in rows),
            "CPU s/1k": all(row.numbers.energy_per_sample_j is None for row in rows) and _cpu_says_more(groups),
        }
        columns = [
            column if column.flag in (DISTURBED, SUSTAINED) else column._replace(flag=None)
            for column in (*first, *SCALING, *MAIN)
            if not column.is_wide and says.get(column.title, True)
        ]
    kept = [column for column in columns if any(column.show(row) != NONE for row in rows)]
    return [column._replace(hides=7) if differ and column.title == "step" else column for column in kept]


def _cpu_says_more(groups: Sequence[GroupRows]) -> bool:
    """Whether the ratio of CPU seconds to the baseline's is far from the ratio of times, in some row."""
    ratios = []
    for group in groups:
        cpus = {id(row): (row.numbers.cpu_per_sample_ns or 0) / (row.numbers.sample_ns or 1) for row in group.rows}
        bases = {row.member: cpus[id(row)] for row in group.rows if row.is_baseline}
        only = next(iter(bases.values())) if len(bases) == 1 else 0
        known = [(cpus[id(row)], bases.get(row.member, only)) for row in group.rows if _cpu_seconds(row)]
        ratios += [max(cpu / base, base / cpu) for cpu, base in known if cpu and base]
    return max(ratios, default=1) > CPU_SAYS_MORE
