"""The columns of a comparison's table: the name of a row, what it shows in each column, and its answer at the end.

A metric's column is made from its entry in `kit.compare.metrics`; columns that show more than a metric are here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from string import ascii_uppercase

from kit.compare.metrics import METRICS
from kit.compare.rows import Comparison, Row
from kit.report.reasons_in_words import LETTERS, name_of
from kit.report.report_table import Column, TableCell
from kit.report.values_in_words import BY_UNIT, NONE, duration, hundredths, number, one_line, rate, with_sd
from kit.report.verdicts_in_words import answer, shows_times, with_words

# The first column names the rows. A longer name, as of a profile, is cut: CSV has it whole.
NAME = Column("", right=False, width_max=34)
# A longer name, of a cell and whose it is, may be cut in each row: a letter stands for the side.
LABELLED_MAX = 18
STYLES = {"faster": "green", "slower": "red"}
# The default table has the letters of what makes a number mean less than it seems to.
ALWAYS_LETTERED = ("sustained_differs", "is_disturbed")
# CPU seconds that follow the step add nothing to it. At 2 a cell keeps two CPUs busy where its baseline keeps one.
CPU_SAYS_MORE = 2.0
# A board that is loaded for seconds settles at the clock that its power and heat allow: a B200 loses 15 % within 100
# iterations (flashinfer, pull request 2899). The sustained step is shown where it differs from the burst step by more
# than this fraction. Less says nothing of a board: a launch has one long block, and steps of single blocks of a board
# that keeps its clock differ by about as much.
SUSTAINED_LEAST = 0.03
# A user waits for a compilation of 5 s at every start; it can decide against a faster step.
COMPILE_SHOWN_NS = 5e9
PHASES_SHOWN = ("import", "build", "trace", "compile", "first_step")
# Where a table is too wide, the columns with the smallest number are hidden first.
HIDES = {"compile_ns": 1, "cpu_per_sample_ns": 4, "samples_per_s": 5, "sustained_clock_mhz": 6, "sustained_ns": 7}
HIDES |= {"energy_per_sample_j": 8, "step_ns": 9}
SUSTAINED = ("sustained_ns", "sustained_clock_mhz")
# Without --wide a platform shows what is judged, and joules and costs where they are known.
OF_A_PLATFORM = ("step_ns", "fit_total_ns", "latency_ns", "sample_ns", "energy_per_sample_j", "cost_per_million")


def sides_of(comparison: Comparison) -> tuple[list[str], dict[str, str]]:
    """Return the sides that are next to each other, one without a name where none are, and what tables call a side.

    A run with a long label is called by a letter, a platform by its device alone. A platform that shares its device
    with another has its whole name; other sides have no short name.
    """
    labels = [head.label for head in comparison.headlines]
    if comparison.kind == "platforms":
        sides = comparison.sides or labels
        devices = [side.partition(" · ")[0] for side in sides]
        named = zip(sides, devices, strict=True)
        return sides, {side: one_line(device if devices.count(device) == 1 else side) for side, device in named}
    longest = max((len(row.name) for row in comparison.rows), default=0)
    has_letters = comparison.kind == "runs" and longest > LABELLED_MAX and len(labels) <= len(ascii_uppercase)
    return [""], dict(zip(labels, ascii_uppercase, strict=False)) if has_letters else {}


def row_name(row: Row, short: Mapping[str, str]) -> str:
    """Return what the column of names calls a row; `short`: what tables call a side."""
    return f"{row.member} · {short[row.side]}" if row.side in short else row.name


def name_cell(name: str, row: Row | None) -> TableCell:
    """Return the cell of a name, red where the line is that of a single row, which has no number."""
    return TableCell(one_line(name), "" if row is None or row.has_number else "red")


def cell_of(column: Column, row: Row, style: str, *, wide: bool) -> TableCell:
    """Return what a row shows in a column, with the letter of its metric where that is true of the row.

    Without `wide`, only letters of what makes a number mean less than it seems to, and of the metric that is compared.
    """
    words = column.read(row)
    mark = METRICS[column.name].mark if column.name in METRICS and words is not None else ""
    if mark and (wide or mark in ALWAYS_LETTERED or column.name == row.metric) and row.value(mark):
        return TableCell(f"{words}{LETTERS[mark]}", style, mark=mark)
    return TableCell(NONE if words is None else words, style)


def answer_cell(row: Row, *, is_compared: bool, in_times: bool) -> TableCell:
    """Return the answer of a row. Where nothing is compared, a baseline need not say that it is one.

    It has a color where its words are a verdict. `in_times`: no ratio is shown as a percentage.
    """
    words = "" if not is_compared and row.is_baseline and row.has_number else answer(row, in_times=in_times)
    known = row.versus
    if known is None:
        return TableCell(words, "" if row.has_number else "red")
    is_resolved = known.modes is None and known.contention_pct is None and known.low is not None
    return TableCell(words, STYLES.get(known.verdict, "") if is_resolved else "")


def _is_network(row: Row) -> bool:
    return not row.is_operation


def _has_samples(row: Row) -> bool:
    return _is_network(row) and row.has_samples


def _metric(name: str, applies: Callable[[Row], bool] = lambda _: True, *, is_wide: bool | None = None) -> Column:
    """Return the column of a metric; of rows to which it does not apply a dash."""
    metric = METRICS[name]

    def words(row: Row) -> str | None:
        known = row.value(name) if applies(row) else None
        return None if known is None else BY_UNIT[metric.unit](known)

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
        median_ns = row.details.get(f"phase {name}_ns")
        return duration(median_ns) if isinstance(median_ns, int | float) else None

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


def _joules(row: Row, *, in_times: bool = False) -> str | None:
    """Return joules per 1,000 samples, and how they compare with the baseline's."""
    known = row.value("energy_per_sample_j")
    if known is None or row.energy_versus is None:
        return None if known is None else number(1000 * known)
    words = with_words(row.energy_versus, METRICS["energy_per_sample_j"], in_times=in_times)
    return f"{number(1000 * known)}, {words}"


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
    return row.cell.device == "cpu" and _has_samples(row)


STEP = (
    _metric("figure"),
    _metric("step_ns"),
    *map(_metric, SUSTAINED),
    Column("rate", partial(_rate, is_network=False)),
    _metric("empty_wait_ns", lambda row: row.is_operation),
    _metric("sample_ns", _has_samples),
    Column("fit", _fit, name="fit_total_ns"),
    _metric("fit_pipeline_ratio"),
    Column("accuracy %", partial(_score, kind="accuracy", words=hundredths), name="fit_score"),
    Column("MSE", partial(_score, kind="mean_squared_error", words=number), name="fit_score"),
    _metric("fit_test_ns"),
    _metric("samples_per_s", _has_samples),
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
    *map(_metric, ("raw_step_ns", "drift_pct", "cpus", "launches", "cycles")),
    *map(_phase, PHASES_SHOWN),
)
PLACED = {column.name for column in (*STEP, *LATENCY, *MAIN, *WIDE)}


def shown_columns(groups: Sequence[Sequence[Row]], by: str, *, wide: bool, is_platform: bool = False) -> list[Column]:
    """Return the columns in which any row has something, what is judged (`by`) first; without `wide` those that answer.

    Time per sample is one of them where batches differ; the step's is then hidden before names are cut. On platforms,
    which stand next to each other, no column is hidden.
    """
    rows = [row for group in groups for row in group]
    differ = any(len({row.cell.batch for row in group}) > 1 for group in groups)
    # A fit is judged by its whole time, whatever the others are judged by.
    is_by_latency = by == "latency_ns" and all(row.cell.in_blocks for row in rows)
    first, second = (LATENCY, STEP) if is_by_latency else (STEP, LATENCY)
    changes_pct = [abs(row.value("sustained_change_pct") or 0) for row in rows] if METRICS[by].is_time else []
    differs = max(changes_pct, default=0) > 100 * SUSTAINED_LEAST
    if wide:
        others = [_metric(name) for name, metric in METRICS.items() if metric.title and name not in PLACED]
        columns = [*first, *second, *SCALING, *MAIN, *WIDE, *others, OBSERVED]
    else:
        says = {
            "sample_ns": differ,
            "compile_ns": any((row.value("compile_ns") or 0) >= COMPILE_SHOWN_NS for row in rows),
            "cpu_per_sample_ns": all(row.value("energy_per_sample_j") is None for row in rows)
            and _cpu_says_more(groups),
            **dict.fromkeys(SUSTAINED, differs),
            by: True,
        }
        columns = [
            column
            for column in (*first, *SCALING, *MAIN)
            if (not column.is_wide or column.name == by) and says.get(column.name, True)
        ]
        columns.append(_metric(by, is_wide=False))
    in_times = shows_times(rows, lambda row: row.energy_versus)
    columns = [
        column._replace(read=partial(_joules, in_times=in_times)) if column.read is _joules else column
        for column in columns
    ]
    # Refused joules and clocks are dashes, of which a note has the reason.
    shown = {"energy_per_sample_j"} if any(row.value("energy_refusal") for row in rows) else set()
    shown |= {*SUSTAINED} if differs else set()
    columns = [
        column for column in columns if column.name in shown or any(column.read(row) is not None for row in rows)
    ]
    if not wide and sum(column.name == by for column in columns) > 1:
        columns.pop()
    if is_platform:
        return [column for column in columns if wide or column.name in (*OF_A_PLATFORM, *SUSTAINED, by)] or [STEP[1]]
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
