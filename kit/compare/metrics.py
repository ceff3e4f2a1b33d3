"""Every metric: an entry here makes it a column of wide tables, CSV and JSON, and says how it is compared.

Entries come in the order of the columns of CSV. `kit compare --metric NAME` takes the name with its unit or without.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

from kit.compare.ceilings import CeilingReach, reach_of
from kit.compare.clean import DEVICE_OTHERS
from kit.compare.fits import (
    SQUARED_ERROR,
    fits,
    fitted,
    launch_score,
    repeats,
    score_matters,
    score_sd,
    total_ns,
)
from kit.compare.joules import DRAWN, HOST, drawn, refusals, sample_joules, step_joules, tier
from kit.compare.ratios import Metric, adjusted, figure_values
from kit.compare.runs import Run, Sample
from kit.compare.table import (
    SUSTAINED_LEAST_ON_CPU_PCT,
    SUSTAINED_LEAST_PCT,
    Counted,
    LaunchRow,
    SustainedStep,
    counted,
    known_mean,
    showing_start,
    sustained_step,
)
from kit.devices import DEVICES
from kit.errors import KitError
from kit.nearest import did_you_mean
from kit.profile.fields import Value
from kit.profile.program_source import CommandSource
from kit.profile.schema import INJECTED_NS, SuiteUsed
from kit.stats.estimate import TIME_WORDS, Estimate, over, standard_error
from kit.stats.sessions import RunLevel

COMPILE_PHASES = ("trace", "compile", "first_step")
# Phases of the process, and with them those of a program in it, up to the end of the first step.
PROCESS_PHASES = ("start", "import")
START_PHASES = (*PROCESS_PHASES, "data", "build", *COMPILE_PHASES)
UNITS = ("_ns", "_j", "_b", "_w", "_pct")
# What a launch has that gives its cell metrics, by how the names of these begin.
NEEDS: dict[str, Callable[[LaunchRow], bool]] = {
    "fit_": lambda launch: launch.record.fit is not None,
    "energy_": lambda launch: bool(launch.energy),
    "token": lambda launch: launch.record.tokens is not None,
    "figure": lambda launch: bool(launch.blocks.figure),
    "injected_": lambda launch: INJECTED_NS in launch.counting.counters,
}


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of those above zero; null where there is none."""
    logs = [math.log(value) for value in values if value is not None and value > 0]  # nan is not
    return math.exp(sum(logs) / len(logs)) if logs else None


def value(sample: Sample, name: str) -> Any:  # noqa: ANN401 - a number, a text or null
    """Return a metric's value of a cell in a run; null: it has none, or its launches were dropped."""
    values = sample.values
    if name not in values:
        if sample.cell_group is None:
            return None
        metric = METRICS[name]
        values[name] = _summed_up(metric, sample) if metric.read is None else metric.read(sample)
    return values[name]


def _summed_up(metric: Metric, sample: Sample) -> Value | None:
    if metric.observe is None or metric.over is None:
        return None
    seen = [known for launch in sample.good if (known := metric.observe(sample, launch)) is not None]
    return metric.over(seen) if seen else None


def read_metrics(run: Run, names: Iterable[str]) -> None:
    """Read metrics of a run's cells into their values, but those that need what none of its launches has."""
    lacking = tuple(begin for begin, has in NEEDS.items() if not any(map(has, run.table)))
    for name in names:
        if not name.startswith(lacking):
            for sample in run.samples.values():
                value(sample, name)


def value_of_runs(metric: Metric, samples: Sequence[Sample]) -> Any:  # noqa: ANN401 - as above
    """Return a metric's value of several runs of a cell: as the metric sums it up, of one its own."""
    if len(samples) > 1 and metric.runs is None:
        return None
    name = metric.name if len(samples) == 1 else metric.runs_of or metric.name
    return together(
        metric, [sample.values[name] if name in sample.values else value(sample, name) for sample in samples]
    )


def together(metric: Metric, values: Sequence[Any]) -> Any:  # noqa: ANN401 - as above
    """Return what the values of a metric in several runs come to."""
    if len(values) == 1:
        return values[0]
    known = [number for number in values if number is not None]
    return metric.runs(known) if metric.runs is not None and known else None


def details(sample: Sample) -> dict[str, Value]:
    """Return the values of each phase, counter and sensor, by their columns of CSV."""
    sensors = defaultdict(list)
    for name, summary in (item for launch in sample.good for item in launch.record.sensors.items()):
        sensors[name].append(summary)
    columns: dict[str, Value] = {f"phase {name}_ns": median_ns for name, median_ns in phases_ns(sample.good).items()}
    columns |= {f"{name} per step": grown for name, grown in counters_per_step(sample.good).items()}
    for name, summaries in sensors.items():
        columns[f"{name} mean {summaries[0].unit}"] = statistics.fmean(summary.mean for summary in summaries)
        columns[f"{name} max {summaries[0].unit}"] = max(summary.max for summary in summaries)
    return columns


def phases_ns(launches: Sequence[LaunchRow]) -> dict[str, float]:
    """Return each phase's median duration; of compilations only of launches that show how the program starts."""
    durations = defaultdict(list)
    starts = showing_start(launches)
    for launch in launches:
        for phase in launch.record.phases:
            if phase.name not in COMPILE_PHASES or launch in starts:
                durations[phase.name].append(phase.duration_ns)
    return {name: statistics.median(times_ns) for name, times_ns in durations.items()}


def counters_per_step(launches: Sequence[LaunchRow]) -> dict[str, float]:
    """Return each counter's growth per step, lead-in steps included; blocks whose read failed are left out."""
    names = dict.fromkeys(name for launch in launches for name in launch.counting.counters if name != DEVICE_OTHERS)
    return {name: blocks.per_step[0] for name in names if (blocks := counted(launches, name)) is not None}


def _per_token(read: Callable[[Sample, LaunchRow], Any]) -> Callable[[Sample, LaunchRow], Any]:
    """Return how a value of a step is read per token: a number, a number a block, or nothing without tokens."""

    def observe(sample: Sample, launch: LaunchRow) -> Any:  # noqa: ANN401 - as `Metric.observe`
        known, tokens = read(sample, launch), launch.record.tokens
        if known is None or tokens is None:
            return None
        return [each / tokens for each in known] if isinstance(known, list) else known / tokens

    return observe


def _tokens(sample: Sample) -> int | None:
    """Return how many tokens a step handles; null: the program does not say, or its launches do not agree."""
    tokens = {launch.record.tokens for launch in sample.good}
    return tokens.pop() if len(tokens) == 1 else None


def _of_step_per_token(name: str) -> Callable[[Sample], float | None]:
    def read(sample: Sample) -> float | None:
        known, tokens = value(sample, name), _tokens(sample)
        return None if known is None or tokens is None else float(known / tokens)

    return read


def _tokens_per_s(sample: Sample) -> float | None:
    token_ns = value(sample, "token_ns")
    return 1e9 / token_ns if token_ns else None


def run_level(metric: Metric, sample: Sample) -> RunLevel | None:
    """Return what a run adds to its side when runs are compared by a metric; None without a number."""
    untimed, times = untimed_level(metric, sample), sample.run.times
    if untimed is None:
        return None
    return RunLevel(untimed.log, untimed.se, untimed.rounds, untimed.contention, times.begin_s, times.end_s)


def untimed_level(metric: Metric, sample: Sample) -> RunLevel | None:
    """Return it without the times of the run, which may turn out to be wrong."""
    if metric.name not in sample.levels:
        sample.levels[metric.name] = _untimed_level(metric, sample)
    return sample.levels[metric.name]


def _untimed_level(metric: Metric, sample: Sample) -> RunLevel | None:
    shown = value(sample, judged_name(metric.name, sample))
    if shown is None or (metric.compare == "ratio" and not shown):
        return None
    is_log, se = metric.compare == "ratio", standard_error(round_levels(metric, sample).values())
    rounds = len({launch.record.round for launch in sample.good})
    contention = (sample.taken_pct or 0.0) / 100 if metric.is_time else 0.0
    log = math.log(shown) if is_log else float(shown)
    return RunLevel(log, se, rounds, contention)


def usual_metric(suite: SuiteUsed) -> str:
    """Return the metric that cells are compared by unless somebody names another: the figure of commands with one."""
    has_figure = any(source.command is not None and source.command.has_figure for source in suite.programs.values())
    return "figure" if has_figure else "step_ns"


def judged_name(name: str, sample: Sample) -> str:
    """Return what cells and runs are compared by: the whole time of a fit, the time per sample where there are some."""
    if name == "figure":
        return "figure_cost"
    if METRICS[name].is_time and sample.cell.traits.judged:
        return sample.cell.traits.judged
    return "sample_ns" if METRICS[name].per_sample and sample.cell.batch > 0 else name


def level(metric: Metric, sample: Sample) -> Estimate:
    """Return a cell's own level over the rounds of its run.

    A ratio of two cells of a round is free of what slowed both. A level is not: its interval holds the machine's drift
    during the run, and says nothing of the machine's other days.
    """
    return over(round_levels(metric, sample).values(), is_log=metric.compare == "ratio")


def round_levels(metric: Metric, sample: Sample) -> dict[int, float]:
    """Return a cell's own level in each round: of a ratio its logarithm.

    Launches of one round shared the machine's state, so their mean is one value.
    """
    is_log = metric.compare == "ratio"
    rounds: dict[int, list[float]] = {}
    for number, figure in figure_values(metric, sample):
        if math.isfinite(figure) and (figure > 0 or not is_log):
            rounds.setdefault(number, []).append(math.log(figure) if is_log else figure)
    return {number: statistics.fmean(values) if values[1:] else values[0] for number, values in rounds.items()}


def step_times(sample: Sample, launch: LaunchRow) -> list[float] | float:
    """Return nanoseconds a step of each block; of a fit, which runs in stretches of unlike lengths, of the whole."""
    return launch.times_ns() if sample.cell.in_blocks else launch.mean_step_ns


def latencies(sample: Sample, launch: LaunchRow) -> list[float] | float:
    """Return the median of each block's steps that were waited for one by one; a fit is known by its whole time."""
    return launch.times_ns("latency") if sample.cell.in_blocks else launch.mean_step_ns


def _command(sample: Sample) -> CommandSource | None:
    """Return the command that a cell is; None: it is none."""
    source = None if sample.cell_group is None else sample.cell_group.programs.get(sample.cell.workload)
    return None if source is None else source.command


def _is_rate(sample: Sample) -> bool:
    """Return whether more is better of the figure that a command prints."""
    command = _command(sample)
    return command is not None and command.better == "more"


def _figure_costs(sample: Sample, launch: LaunchRow) -> list[float] | None:
    """Return a command's figure in each block, turned over where more is better, so that less is better here."""
    figures = launch.counting.figure
    return ([1 / figure if figure else math.nan for figure in figures] if _is_rate(sample) else figures) or None


def _figure_kind(sample: Sample, _launch: LaunchRow) -> object:
    """Return what a figure is: those of two profiles may be of unlike quantities."""
    command = _command(sample)
    return command and (command.unit or command.figure, command.better)


def _figure_cost(sample: Sample) -> float | None:
    metric = METRICS["figure"]
    return adjusted(metric, sample, lambda cell: geometric_mean([known for _, known in figure_values(metric, cell)]))


def _figure(sample: Sample) -> float | None:
    cost: float | None = value(sample, "figure_cost")
    return 1 / cost if cost and _is_rate(sample) else cost


def _raw_step_ns(sample: Sample) -> float | None:
    return geometric_mean([step_ns for _, step_ns in figure_values(METRICS["step_ns"], sample)])


def _adjusted(name: str, raw_name: str) -> Callable[[Sample], float | None]:
    """Return how a metric is read that a table shows as the baseline's times the ratio (`adjusted`)."""
    return lambda sample: adjusted(METRICS[name], sample, lambda cell: value(cell, raw_name))


def _step_end_ns(sample: Sample, end: int) -> float | None:
    """Return an end of the interval of a step: over rounds of its run, so that it holds the machine's drift."""
    raw, raw_ns, step_ns = level(METRICS["step_ns"], sample), value(sample, "raw_step_ns"), value(sample, "step_ns")
    end_ns = (raw.low, raw.high)[end]
    return None if end_ns is None or not raw_ns or not step_ns else end_ns * step_ns / raw_ns


def _latency_ns(sample: Sample) -> float | None:
    """Return the median of the same steps as p95 and p99.

    If it was not recorded, this is the median of the blocks' medians, weighted by their steps.
    """
    if (recorded := sample.percentiles_ns[0]) is not None:
        return recorded
    waited = sorted(
        (median_ns, steps)
        for blocks in (launch.counting for launch in sample.good)
        for median_ns, steps in zip(blocks.median_ns, blocks.waited_steps or blocks.steps, strict=True)
        if median_ns is not None
    )
    so_far = accumulate(steps for _, steps in waited)
    half = sum(steps for _, steps in waited) / 2
    return next((float(median_ns) for (median_ns, _), steps in zip(waited, so_far, strict=True) if steps >= half), None)


def start_ns(sample: Sample, launch: LaunchRow) -> int | None:
    """Return the time from the process's start to the first step done; of a later program of it, from its own data on.

    Null where the start of the process was not measured.
    """
    phases: dict[str, int] = {phase.name: phase.duration_ns for phase in launch.record.phases}
    if launch not in sample.starts:
        return None
    if launch.is_warm:
        return sum(phases.get(name, 0) for name in START_PHASES if name not in PROCESS_PHASES)
    return sum(phases.get(name, 0) for name in START_PHASES) if "start" in phases else None


def compile_ns(sample: Sample, launch: LaunchRow) -> int | None:
    """Return the time of trace, compilation and first step together; null where an earlier compilation was reused."""
    if launch not in sample.starts:
        return None
    return sum([phase.duration_ns for phase in launch.record.phases if phase.name in COMPILE_PHASES]) or None


def _median_of_start(observe: Callable[[Sample, LaunchRow], int | None]) -> Callable[[Sample], float | None]:
    """Return how a time before the first block is read."""

    def read(sample: Sample) -> float | None:
        times_ns = [time_ns for launch in sample.starts if (time_ns := observe(sample, launch)) is not None]
        return statistics.median(times_ns) if times_ns else None

    return read


def _memory_b(sample: Sample, launch: LaunchRow) -> int | None:
    """Return the most memory of the cell's device that a launch held: of a CPU its process' resident set."""
    record = launch.record
    return record.peak_memory_b if sample.cell.device == HOST else record.peak_device_memory_b


def _sustained(sample: Sample) -> SustainedStep | None:
    return sample.once("sustained", lambda: sustained_step(sample.good))


def _sustained_differs(sample: Sample) -> bool:
    """Return whether joules and samples/s belong to unlike steps."""
    least_pct = SUSTAINED_LEAST_ON_CPU_PCT if sample.cell.device == HOST else SUSTAINED_LEAST_PCT
    return (steps := _sustained(sample)) is not None and abs(steps.difference_pct) >= least_pct


def _sustained_ns(sample: Sample) -> float | None:
    """Return the step that tables show, times the ratio of sustained to burst step in the launches that have both.

    The long blocks' own step, of one round perhaps, would contradict that ratio beside a step of all rounds.
    """
    steps, step_ns = _sustained(sample), value(sample, "step_ns")
    return None if steps is None or step_ns is None else float(step_ns * steps.sustained_ns / steps.burst_ns)


def _sustained_change_pct(sample: Sample) -> float | None:
    steps = _sustained(sample) if sample.cell.device != HOST else None
    return None if steps is None else steps.difference_pct


def _is_clock(name: str, sample: Sample) -> bool:
    """Return whether a sensor reads the clock of the boards of a cell, and not that of the host."""
    device = DEVICES.get(sample.cell.device)  # a profile may be of a kit that has another kind
    return device is not None and name.startswith(f"{device.energy_source}.") and name.endswith(".frequency")


def _sustained_clock_mhz(sample: Sample) -> float | None:
    """Return the mean clock of the boards of a cell in its long blocks."""
    launches = [launch for launch in sample.good if sample.cell.device != HOST and sustained_step([launch])]
    readings = (item for launch in launches for item in launch.record.sensors.items())
    return known_mean(summary.mean for name, summary in readings if _is_clock(name, sample))


def _sustained_refusal(sample: Sample) -> str | None:
    """Return the code of why the sustained step of an accelerator, or its clock, is null."""
    if sample.cell.device == HOST or not sample.cell.in_blocks or not sample.good:
        return None
    if _sustained(sample) is None:
        return "no_long_block"
    return "no_clock_sensor" if value(sample, "sustained_clock_mhz") is None else None


def _cpu_used(sample: Sample, launches: Sequence[LaunchRow]) -> Counted | None:
    """Return CPU time in blocks; of a command that of its runs, which a server computes in part elsewhere."""
    command = _command(sample)
    if command is not None and command.serve:
        return None
    return counted(launches, "process.cpu_ns" if command is None else "process.children_ns")


def _cpu_time(sample: Sample, launches: Sequence[LaunchRow]) -> tuple[float, float] | None:
    """Return CPU time, and of how many samples."""
    used = _cpu_used(sample, launches) if sample.cell.batch > 0 else None
    return None if used is None else (used.sums[0], float(used.steps * sample.cell.batch))


def _cpu_per_sample_ns(sample: Sample) -> float | None:
    used = _cpu_time(sample, sample.good)
    return None if used is None else used[0] / used[1]


def _cpus_used(sample: Sample) -> float | None:
    used = _cpu_used(sample, sample.good)
    return None if used is None else used.sums[0] / used.total_ns


def _injected_ratio(_sample: Sample, launch: LaunchRow) -> float | None:
    """Return a launch's steps over what they would have been without the delay in them: the median over its blocks."""
    delays_ns = launch.counting.counters.get(INJECTED_NS)
    if delays_ns is None:
        return None
    both_ns = zip(launch.counting.span_ns, delays_ns, strict=True)
    return statistics.median(span_ns / (span_ns - (delay_ns or 0)) for span_ns, delay_ns in both_ns)


def _drift_pct(sample: Sample) -> float | None:
    return _drift_of_runs([step_ns for _, step_ns in figure_values(METRICS["step_ns"], sample)])


def _drift_of_runs(steps_ns: Sequence[float]) -> float | None:
    steps = over(map(math.log, steps_ns))
    return 100 * steps.se_log * math.sqrt(steps.count) if steps.count > 1 else None


def reach(sample: Sample) -> CeilingReach | None:
    """Return what a cell reaches of the ceilings of its run."""

    def compute() -> CeilingReach | None:
        ratio = value(sample, "fit_pipeline_ratio")
        return reach_of(sample.cell, value(sample, "step_ns"), ratio, sample.run.ceilings)

    return sample.once("reach", compute)


def _reached(name: str) -> Callable[[Sample], Value | None]:
    return lambda sample: None if (reached := reach(sample)) is None else getattr(reached, name)


def _utilization_pct(sample: Sample) -> float | None:
    """Return the fraction of the long block in which a kernel ran on the boards of the cell; no more than that."""
    means = details(sample) if sample.cell.device != HOST else {}
    return known_mean(float(mean_pct) for name, mean_pct in means.items() if name.endswith(".utilization mean %"))


def _per_batch(name: str, over_batch: bool) -> Callable[[Sample], float | None]:
    def read(sample: Sample) -> float | None:
        step_ns, batch = value(sample, name), sample.cell.batch
        if not step_ns or batch < 1:
            return None
        return float(step_ns / batch if over_batch else 1e9 * batch / step_ns)

    return read


TIME: dict[str, Any] = {"compare": "ratio", "words": TIME_WORDS, "is_time": True}
WITH_FASTER: dict[str, Any] = {"compare": "ratio", "words": TIME_WORDS, "runs": geometric_mean, "is_slowed": True}
# What is known of joules and of ceilings is a number but for these.
HELD: dict[str, type] = {"launches": int} | dict.fromkeys(
    ("sensors", "tier", "method", "unit", "bound", "ceiling_unit", "operation"), str
)
_METRICS = [
    Metric("launches", "launches", "count", holds=int, read=lambda sample: len(sample.good), runs=sum),
    Metric("failed", holds=int, runs=sum,
           read=lambda sample: sum(launch.record.failure is not None for launch in sample.figures)),
    Metric("step_ns", "step", "ns", step_times, read=_adjusted("step_ns", "raw_step_ns"), runs=geometric_mean,
           per_sample=True, shown="table", mark="is_disturbed", **TIME),
    Metric("raw_step_ns", "raw step", "ns", read=_raw_step_ns, runs=geometric_mean),
    Metric("figure", "figure", "number", _figure_costs, read=_figure, runs=geometric_mean, shown="table", part="rare",
           mark="is_disturbed", kind=_figure_kind, **TIME),
    Metric("figure_cost", read=_figure_cost, runs=geometric_mean, part="rare"),
    Metric("latency_ns", "median", "ns", latencies, read=_latency_ns, runs=geometric_mean, mark="is_disturbed", **TIME),
    Metric("sample_ns", "time/sample", "ns", read=_per_batch("step_ns", True), runs=geometric_mean, shown="table"),
    Metric("p95_ns", "p95", "ns", read=lambda sample: sample.percentiles_ns[1], runs=geometric_mean),
    Metric("p99_ns", "p99", "ns", read=lambda sample: sample.percentiles_ns[2], runs=geometric_mean),
    Metric("samples_per_s", "samples/s", "number", read=_per_batch("step_ns", False), runs=geometric_mean,
           shown="table"),
    Metric("tokens", "tokens", "count", holds=int, read=_tokens, runs=lambda values: values[0], part="rare"),
    Metric("token_ns", "time/token", "ns", _per_token(step_times), read=_of_step_per_token("step_ns"),
           runs=geometric_mean, part="rare", **TIME),
    Metric("tokens_per_s", "tokens/s", "number", read=_tokens_per_s, runs=geometric_mean, shown="table", part="rare"),
    Metric("energy_per_token_j", "J/1k tokens", "per_1k", _per_token(step_joules), kind=tier, needs_blocks=False,
           read=_of_step_per_token("energy_per_step_j"), runs=geometric_mean, compare="ratio", shown="table",
           part="rare"),
    Metric("start_ns", "start", "s", start_ns, read=_median_of_start(start_ns), mark="warm_start", **WITH_FASTER),
    Metric("compile_ns", "compile", "s", compile_ns, read=_median_of_start(compile_ns), shown="table",
           mark="warm_start", **WITH_FASTER),
    Metric("warm_start", holds=bool, read=lambda sample: sample.was_never_first, runs=any),
    Metric("peak_memory_b", "peak memory", "b", _memory_b, max, holds=int, runs=max, compare="ratio",
           mark="process_shared"),
    Metric("process_shared", holds=bool, observe=lambda _, launch: launch.is_shared, over=any, runs=any),
    Metric("energy_per_sample_j", "J/1k", "per_1k", sample_joules, runs=geometric_mean, compare="ratio", kind=tier,
           needs_blocks=False, shown="table", mark="sustained_differs",
           read=_adjusted("energy_per_sample_j", "energy_raw_per_sample_j")),
    Metric("sustained_ns", "sustained step", "ns", read=_sustained_ns, runs=geometric_mean, shown="table"),
    Metric("sustained_differs", holds=bool, runs=any,
           read=_sustained_differs),
    Metric("sustained_change_pct", read=_sustained_change_pct, runs=statistics.fmean, part="sustained"),
    Metric("sustained_clock_mhz", "mean clock", "mhz", read=_sustained_clock_mhz, runs=statistics.fmean, shown="table",
           part="sustained"),
    Metric("sustained_refusal", holds=str, read=_sustained_refusal, runs=lambda codes: codes[0], part="sustained"),
    Metric("cpu_per_sample_ns", "CPU s/1k", "s_per_1k", lambda sample, launch: _cpu_time(sample, [launch]),
           read=_cpu_per_sample_ns, runs=geometric_mean, compare="ratio", shown="table", is_slowed=True),
    Metric("cpus", "CPUs used", "hundredths", read=_cpus_used, runs=geometric_mean),
    Metric("injected_ratio", "injected", "gain_2", _injected_ratio, geometric_mean, runs=geometric_mean, shown="table"),
    Metric("drift_pct", "drift of the machine", "pct", read=_drift_pct, runs=_drift_of_runs,
           runs_of="step_ns"),
    Metric("level_se", read=lambda sample: (known := run_level(METRICS[sample.run.by], sample)) and known.se),
    Metric("rounds", holds=int, read=lambda sample: len({launch.round for launch in sample.good}), runs=min),
    Metric("is_disturbed", holds=bool, read=lambda sample: sample.others_pct is not None, runs=any),
    Metric("cycles", "cycles", "count", holds=int, runs=sum,
           read=lambda sample: sum(len(launch.counting.cycle) for launch in sample.good)),
    Metric("contention_pct", read=lambda sample: sample.taken_pct, runs=max),
    Metric("empty_wait_ns", "empty wait", "ns", lambda _, launch: launch.record.empty_wait_ns, statistics.median),
    Metric("step_low_ns", read=lambda sample: _step_end_ns(sample, 0)),
    Metric("step_high_ns", read=lambda sample: _step_end_ns(sample, 1)),
    Metric("utilization_pct", "util %", "percent", read=_utilization_pct, part="rare"),
    Metric("cost_per_million", "cost/1M", "number", runs=geometric_mean, shown="table", part="rare"),
    *(
        Metric(f"energy_{name}", title, unit, read=drawn(read), part="energy", holds=HELD.get(name, float))
        for name, title, unit, read in DRAWN
    ),
    Metric("energy_refusal", holds=str, part="energy", runs=lambda codes: codes[0],
           read=lambda sample: next((why.code for _, why in refusals(sample)), None)),
    Metric("fit_epochs", holds=int, part="fit",
           read=fitted(lambda fits: fits[0][1].epochs), runs=lambda values: values[0]),
    Metric("fit_updates", holds=int, part="fit",
           read=fitted(lambda fits: fits[0][1].updates), runs=lambda values: values[0]),
    Metric("fit_total_ns", "fit", "ns", runs=geometric_mean, shown="table", part="fit",
           read=lambda sample: total_ns(sample, value(sample, "step_ns"))),
    Metric("fit_is_computed", holds=bool, part="fit",
           read=fitted(lambda fits: any(fit.is_part for _, fit in fits)), runs=any),
    Metric("fit_pipeline_ratio", "pipeline", "gain",
           lambda _, launch: launch.pipeline_ratio, geometric_mean,
           part="fit", **WITH_FASTER),
    Metric("fit_test_ns", "test pass", "ns", lambda _, launch: (fit := launch.record.fit) and fit.test_ns,
           statistics.fmean, part="fit", **WITH_FASTER),
    Metric("fit_metric", holds=str, runs=lambda values: values[0], part="fit",
           read=fitted(lambda fits: "accuracy" if fits[0][1].mean_squared_error is None else SQUARED_ERROR)),
    Metric("fit_score", observe=launch_score, read=lambda sample: known_mean(repeats(sample)), runs=statistics.fmean,
           compare="difference", words=("lower", "higher"), matters=score_matters, needs_blocks=False, part="fit"),
    Metric("fit_score_sd", read=score_sd, part="fit",
           runs=lambda sds: math.sqrt(statistics.fmean(sd**2 for sd in sds))),
    Metric("fit_repeats", holds=int, read=lambda sample: len(repeats(sample)) if fits(sample) else None, runs=sum,
           part="fit"),
    *(
        Metric(f"reach_{name}", read=_reached(name), part="reach", holds=HELD.get(name, float))
        for name in ("rate", "unit", "flops", "bytes", "bound", "share_pct", "ceiling", "ceiling_unit", "operation")
    ),
]  # fmt: skip
METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}


def metric_named(name: str) -> Metric:
    """Return the metric that a user names, with its unit or without.

    Raises:
        KitError: there is none of that name, or it is not compared.
    """
    named = {metric.name: metric for metric in _METRICS if metric.compare}
    short = {full.removesuffix(unit): metric for full, metric in named.items() for unit in UNITS if full.endswith(unit)}
    if (metric := named.get(name) or short.get(name)) is not None:
        return metric
    is_derived = name in METRICS or f"{name}_ns" in METRICS
    why = f"{name!r} is derived from others and not compared by itself" if is_derived else f"no metric {name!r}"
    meant, listed = did_you_mean(name, [*short, *named]), {metric.name: key for key, metric in short.items()}
    raise KitError(f"{why}; choose from {', '.join(listed.get(full, full) for full in named)}{meant}")


def short_name(name: str) -> str:
    """Return a metric's name without its unit, as `--metric` takes it."""
    unit = next((unit for unit in UNITS if name.endswith(unit)), "")
    return name.removesuffix(unit)
