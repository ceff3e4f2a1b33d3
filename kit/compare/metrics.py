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

from kit.compare.blocks import (
    SustainedStep,
    block_times_ns,
    counted,
    cpus_used,
    mean_step_ns,
    pipeline_ratio,
    sustained_step,
)
from kit.compare.ceilings import Reach, reach_of
from kit.compare.clean_cycles import DEVICE_OTHERS
from kit.compare.joules import HOST, LaunchEnergy, device_power_w, launch_energy, launch_entries
from kit.compare.metric import Metric
from kit.compare.paired_ratios import adjusted, figure_values
from kit.compare.sample import Sample
from kit.errors import KitError
from kit.nearest import did_you_mean
from kit.profile.cell import Task
from kit.profile.launch import INJECTED_NS, Fit, Launch
from kit.profile.reason import Value
from kit.stats.estimate import TIME_WORDS, Estimate, over
from kit.stats.runs import RunLevel
from kit.stats.scores import scores

COMPILE_PHASES = ("trace", "compile", "first_step")
# Phases of the process, and with them those of a program in it, up to the end of the first step.
PROCESS_PHASES = ("start", "import")
START_PHASES = (*PROCESS_PHASES, "data", "build", *COMPILE_PHASES)
# Scores agree within one point of accuracy, or 1 % of the baseline's squared error: what papers call the same result.
SCORE_MARGIN = 0.01
UNITS = ("_ns", "_j", "_b", "_w", "_pct")


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of those above zero; null where there is none."""
    logs = [math.log(value) for value in values if value is not None and value > 0]  # nan is not
    return math.exp(sum(logs) / len(logs)) if logs else None


def value(sample: Sample, name: str) -> Any:  # noqa: ANN401 - a number, a text or null
    """Return a metric's value of a cell in a run; null: it has none, or its launches were dropped."""
    computed = sample.computed
    if name not in computed:
        if sample.together is None:
            return None
        computed[name] = _value(METRICS[name], sample)
    return computed[name]


def _value(metric: Metric, sample: Sample) -> Value | None:
    if metric.read is not None:
        return metric.read(sample)
    if metric.observe is None or metric.over is None:
        return None
    seen = [known for launch in sample.good if (known := metric.observe(sample, launch)) is not None]
    return metric.over(seen) if seen else None


def value_of_runs(metric: Metric, samples: Sequence[Sample]) -> Any:  # noqa: ANN401 - as above
    """Return a metric's value of several runs of a cell: as the metric sums it up, of one its own."""
    if len(samples) == 1:
        return value(samples[0], metric.name)
    values = [value(sample, metric.runs_of or metric.name) for sample in samples]
    known = [number for number in values if number is not None]
    return metric.runs(known) if metric.runs is not None and known else None


def details(sample: Sample) -> dict[str, Value]:
    """Return the values of each phase, counter and sensor, by their columns of CSV."""
    sensors = defaultdict(list)
    for name, summary in (item for launch in sample.good for item in launch.sensors.items()):
        sensors[name].append(summary)
    columns: dict[str, Value] = {f"phase {name}_ns": median_ns for name, median_ns in phases_ns(sample.good).items()}
    columns |= {f"{name} per step": grown for name, grown in counters_per_step(sample.good).items()}
    for name, summaries in sensors.items():
        columns[f"{name} mean {summaries[0].unit}"] = statistics.fmean(summary.mean for summary in summaries)
        columns[f"{name} max {summaries[0].unit}"] = max(summary.max for summary in summaries)
    return columns


def phases_ns(launches: Iterable[Launch]) -> dict[str, float]:
    """Return each phase's median duration; of compilations only of those that reused nothing."""
    durations = defaultdict(list)
    for launch in launches:
        for phase in launch.phases:
            if not (launch.reused_compilation and phase.name in COMPILE_PHASES):
                durations[phase.name].append(phase.duration_ns)
    return {name: statistics.median(times_ns) for name, times_ns in durations.items()}


def counters_per_step(launches: Sequence[Launch]) -> dict[str, float]:
    """Return each counter's growth per step, lead-in steps included; blocks whose read failed are left out."""
    names = dict.fromkeys(name for launch in launches for name in launch.blocks.counters if name != DEVICE_OTHERS)
    return {name: blocks.per_step[0] for name in names if (blocks := counted(launches, name)) is not None}


def _per_token(read: Callable[[Sample, Launch], Any]) -> Callable[[Sample, Launch], Any]:
    """Return how a value of a step is read per token: a number, a number a block, or nothing without tokens."""

    def observe(sample: Sample, launch: Launch) -> Any:  # noqa: ANN401 - as `Metric.observe`
        known, tokens = read(sample, launch), launch.tokens
        if known is None or tokens is None:
            return None
        return [each / tokens for each in known] if isinstance(known, list) else known / tokens

    return observe


def _tokens(sample: Sample) -> int | None:
    """Return how many tokens a step handles; null: the program does not say, or its launches do not agree."""
    tokens = {launch.tokens for launch in sample.good}
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

    def compute() -> RunLevel | None:
        shown = value(sample, judged_name(metric.name, sample))
        if shown is None or (metric.compare == "ratio" and not shown):
            return None
        error, is_log = level(metric, sample), metric.compare == "ratio"
        se = error.se_log if error.has_interval else None
        rounds = len({launch.round for launch in sample.good})
        contention = (sample.taken_pct or 0.0) / 100 if metric.is_time else 0.0
        log = math.log(shown) if is_log else float(shown)
        return RunLevel(log, se, rounds, contention)

    untimed, times = sample.once(f"level {metric.name}", compute), sample.run.times
    return None if untimed is None else untimed._replace(begin_s=times.begin_s, end_s=times.end_s)


def judged_name(name: str, sample: Sample) -> str:
    """Return what cells and runs are compared by: the whole time of a fit, the time per sample where there are some."""
    if METRICS[name].is_time and sample.cell.task == "fit":
        return "fit_total_ns"
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
    is_log, rounds = metric.compare == "ratio", defaultdict[int, list[float]](list)
    for number, figure in figure_values(metric, sample):
        if math.isfinite(figure) and (figure > 0 or not is_log):
            rounds[number].append(math.log(figure) if is_log else figure)
    return {number: statistics.fmean(values) for number, values in rounds.items()}


def step_times(sample: Sample, launch: Launch) -> list[float] | float:
    """Return nanoseconds a step of each block; of a fit, which runs in stretches of unlike lengths, of the whole."""
    return mean_step_ns(launch) if sample.cell.task == "fit" else block_times_ns(launch)


def latencies(sample: Sample, launch: Launch) -> list[float] | float:
    """Return the median of each block's steps that were waited for one by one; a fit is known by its whole time."""
    return mean_step_ns(launch) if sample.cell.task == "fit" else block_times_ns(launch, "latency")


def _raw_step_ns(sample: Sample) -> float | None:
    return geometric_mean(step_ns for _, step_ns in figure_values(METRICS["step_ns"], sample))


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
    if (recorded := sample.result.p50_ns) is not None:
        return recorded
    waited = sorted(
        (median_ns, steps)
        for blocks in (launch.blocks for launch in sample.good)
        for median_ns, steps in zip(blocks.median_ns, blocks.waited_steps or blocks.steps, strict=True)
        if median_ns is not None
    )
    so_far = accumulate(steps for _, steps in waited)
    half = sum(steps for _, steps in waited) / 2
    return next((float(median_ns) for (median_ns, _), steps in zip(waited, so_far, strict=True) if steps >= half), None)


def start_ns(sample: Sample, launch: Launch) -> int | None:
    """Return the time from the process's start to the first step done; of a later program of it, from its own data on.

    Null where the start of the process was not measured.
    """
    phases: dict[str, int] = {phase.name: phase.duration_ns for phase in launch.phases}
    if launch.reused_compilation:
        return None
    if sample.is_warm(launch):
        return sum(phases.get(name, 0) for name in START_PHASES if name not in PROCESS_PHASES)
    return sum(phases.get(name, 0) for name in START_PHASES) if "start" in phases else None


def compile_ns(_sample: Sample, launch: Launch) -> int | None:
    """Return the time of trace, compilation and first step together; null where an earlier compilation was reused."""
    if launch.reused_compilation:
        return None
    return sum(phase.duration_ns for phase in launch.phases if phase.name in COMPILE_PHASES) or None


def _median_of_start(observe: Callable[[Sample, Launch], int | None]) -> Callable[[Sample], float | None]:
    """Return how a time before the first block is read: of launches that count, else of all that finished.

    Where later rounds reuse compilations, the only one with such a time may be a round that others disturbed.
    """

    def read(sample: Sample) -> float | None:
        finished = [launch for launch in sample.launches if launch.failure is None]
        for launches in (sample.good, finished if any(launch.reused_compilation for launch in finished) else ()):
            if times_ns := [time_ns for launch in launches if (time_ns := observe(sample, launch)) is not None]:
                return statistics.median(times_ns)
        return None

    return read


def _memory_b(sample: Sample, launch: Launch) -> int | None:
    """Return the most memory of the cell's device that a launch held: of a CPU its process' resident set."""
    return launch.peak_memory_b if sample.cell.device == HOST else launch.peak_device_memory_b


def _is_shared(sample: Sample, launch: Launch) -> bool:
    return len(sample.run.processes.get((launch.round, launch.process), ())) > 1


def _sustained(sample: Sample) -> SustainedStep | None:
    return sample.once(("sustained",), lambda: sustained_step(sample.good))


def _cpu_time(sample: Sample, launches: Sequence[Launch]) -> tuple[float, float] | None:
    """Return CPU time, and of how many samples."""
    used = counted(launches, "process.cpu_ns") if sample.cell.batch > 0 else None
    return None if used is None else (used.sums[0], float(used.steps * sample.cell.batch))


def _cpu_per_sample_ns(sample: Sample) -> float | None:
    used = _cpu_time(sample, sample.good)
    return None if used is None else used[0] / used[1]


def _injected_ratio(_sample: Sample, launch: Launch) -> float | None:
    """Return a launch's steps over what they would have been without the delay in them: the median over its blocks."""
    delays_ns = launch.blocks.counters.get(INJECTED_NS)
    if delays_ns is None:
        return None
    both_ns = zip(launch.blocks.span_ns, delays_ns, strict=True)
    return statistics.median(span_ns / (span_ns - (delay_ns or 0)) for span_ns, delay_ns in both_ns)


def _drift_pct(sample: Sample) -> float | None:
    return _drift_of_runs([step_ns for _, step_ns in figure_values(METRICS["step_ns"], sample)])


def _drift_of_runs(steps_ns: Sequence[float]) -> float | None:
    steps = over(map(math.log, steps_ns))
    return 100 * steps.se_log * math.sqrt(steps.count) if steps.count > 1 else None


def energies(sample: Sample) -> list[tuple[Launch, LaunchEnergy]]:
    """Return what each launch of a cell's figures drew, where that is known; nothing of a cell without a number."""

    def compute() -> list[tuple[Launch, LaunchEnergy]]:
        finished = [launch for launch in sample.figures if launch.failure is None] if sample.good else []
        drawn = [(launch, launch_energy(sample.cell, launch)) for launch in finished]
        return [(launch, energy) for launch, energy in drawn if energy is not None]

    return sample.once(("energies",), compute)


def _joules(sample: Sample, launch: Launch) -> float | None:
    energy = launch_energy(sample.cell, launch)
    return None if energy is None else energy.joules_j / energy.samples


def _step_joules(sample: Sample, launch: Launch) -> float | None:
    per_sample_j = _joules(sample, launch)
    return None if per_sample_j is None else per_sample_j * sample.cell.batch


def _tier(sample: Sample, launch: Launch) -> str | None:
    """Return how much its joules can be relied on; only those of one tier are set against each other."""
    return launch_entries(sample.cell, launch)[0].tier


def _drawn(read: Callable[[list[LaunchEnergy], Sample], Value | None]) -> Callable[[Sample], Value | None]:
    """Return how a value is read of what a cell's launches drew; null: nothing is known of that."""
    return lambda sample: read([energy for _, energy in energies(sample)], sample) if energies(sample) else None


def _raw_joules(drawn: Sequence[LaunchEnergy], _sample: Sample) -> float:
    return sum(energy.joules_j for energy in drawn) / sum(energy.samples for energy in drawn)


def _mean_j(drawn: Sequence[LaunchEnergy], power_w: Callable[[LaunchEnergy], float | None]) -> float | None:
    """Return joules a sample of a power, over the launches of which it is known."""
    powers_w = [(watts, energy) for energy in drawn if (watts := power_w(energy)) is not None]
    joules_j = sum(watts * energy.block_ns for watts, energy in powers_w) / 1e9
    return joules_j / sum(energy.samples for _, energy in powers_w) if powers_w else None


def _net_w(energy: LaunchEnergy) -> float | None:
    return None if energy.idle_w is None else energy.power_w - energy.idle_w


def _net_error(drawn: Sequence[LaunchEnergy], _sample: Sample) -> float | None:
    """Return the error of net joules a sample: the launches' mean error, as it has one cause in all of them."""
    errors_w = [energy.net_error_w or 0.0 for energy in drawn if energy.idle_w is not None]
    return _mean_j(drawn, lambda energy: None if energy.idle_w is None else statistics.fmean(errors_w))


def _delay_product(drawn: Sequence[LaunchEnergy], sample: Sample) -> float:
    step_s = sum(energy.block_ns for energy in drawn) / 1e9 / sum(energy.samples for energy in drawn)
    return _raw_joules(drawn, sample) * step_s * sample.cell.batch**2


def _highest_w(drawn: Sequence[LaunchEnergy], _sample: Sample) -> float | None:
    """Return the highest power between two readings, of launches all of whose sensors show it."""
    peaks_w = [[entry.power_max_w for entry in energy.entries] for energy in drawn]
    return max((sum(filter(None, sensors_w)) for sensors_w in peaks_w if None not in sensors_w), default=None)


def _compile_j(_drawn: object, sample: Sample) -> float | None:
    """Return the mean joules from the build to the first step done, idle included."""
    joules_j = []
    for launch in sample.figures:
        if launch.failure is not None or launch.reused_compilation:
            continue
        entries = launch_entries(sample.cell, launch, "compile")
        if (power_w := device_power_w(entries)) is not None:
            joules_j.append(power_w * entries[0].block_ns / 1e9)
    return _mean(joules_j)


def _fit_j(sample: Sample, *, per_epoch: bool) -> float | None:
    step_j = value(sample, "energy_per_step_j") or 0.0
    measured = [launch.fit for launch, _ in energies(sample) if launch.fit is not None]
    return _mean(step_j * fit.all_updates / (fit.epochs if per_epoch else 1) for fit in measured)


def fits(sample: Sample) -> list[tuple[Launch, Fit]]:
    """Return the fits that a cell's figures come from."""
    return [(launch, launch.fit) for launch in sample.good if launch.fit is not None]


def _fitted(read: Callable[[list[tuple[Launch, Fit]]], Value | None]) -> Callable[[Sample], Value | None]:
    """Return how a value is read of a cell's fits; null: it has none."""
    return lambda sample: read(measured) if (measured := fits(sample)) else None


def repeats(sample: Sample) -> list[float]:
    """Return the scores of a cell's fits: others make a fit longer, but they do not change what it learns."""
    known = (score_of(launch.fit) for launch in sample.launches if launch.failure is None and launch.fit is not None)
    return [score for score in known if score is not None]


def _score_sd(sample: Sample) -> float | None:
    scored = repeats(sample)
    return statistics.stdev(scored) if len(scored) > 1 else None


def _fit_total_ns(sample: Sample) -> float | None:
    """Return the whole time of a fit: all of its epochs but the first step, each step as long as in its row."""
    step_ns, measured = value(sample, "step_ns"), fits(sample)
    if step_ns is None or not measured:
        return None
    launch, fit = measured[0]
    return float(step_ns * (fit.all_updates - 1 if fit.is_part else sum(launch.blocks.steps)))


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of those that are known; null where none is."""
    numbers = [number for number in values if number is not None]
    return statistics.fmean(numbers) if numbers else None


def epoch_ns(launch: Launch, fit: Fit) -> float | None:
    """Return the mean time of an epoch, the first left out; None where there was no other; of a part computed."""
    if fit.is_part:
        return sum(launch.blocks.duration_ns) / sum(launch.blocks.steps) * fit.all_updates / fit.epochs
    per_epoch = fit.updates // fit.epochs
    # The very first step is in no block.
    done = accumulate(launch.blocks.steps, initial=1)
    next(done)
    later_ns = sum(ns for ns, steps in zip(launch.blocks.duration_ns, done, strict=True) if steps > per_epoch)
    return later_ns / (fit.epochs - 1) if fit.epochs > 1 else None


def score_of(fit: Fit) -> float | None:
    """Return the accuracy, or the mean squared error of a network that reconstructs."""
    if fit.confusion is None:
        return fit.mean_squared_error
    return sum(counts[index] for index, counts in enumerate(fit.confusion)) / sum(map(sum, fit.confusion))


def _score(_sample: Sample, launch: Launch) -> float | None:
    return None if launch.fit is None else score_of(launch.fit)


def score_margin(samples: Sequence[Sample], values: Sequence[float]) -> float:
    """Return the difference of scores that matters, given the baseline's samples and scores."""
    measured = [launch.fit for sample in samples for launch in sample.launches if launch.fit is not None]
    reconstructs = any(fit.mean_squared_error is not None for fit in measured)
    return SCORE_MARGIN * (statistics.fmean(values) if reconstructs and values else 1)


def reach(sample: Sample) -> Reach | None:
    """Return what a cell reaches of the ceilings of its run."""

    def compute() -> Reach | None:
        ratio = value(sample, "fit_pipeline_ratio")
        return reach_of(sample.cell, value(sample, "step_ns"), ratio, sample.run.ceilings)

    return sample.once(("reach",), compute)


def _reached(name: str) -> Callable[[Sample], Value | None]:
    return lambda sample: None if (reached := reach(sample)) is None else getattr(reached, name)


def _utilization_pct(sample: Sample) -> float | None:
    """Return the fraction of the long block in which a kernel ran on the boards of the cell; no more than that."""
    means = details(sample) if sample.cell.device != HOST else {}
    return _mean(float(mean_pct) for name, mean_pct in means.items() if name.endswith(".utilization mean %"))


def _per_batch(name: str, over_batch: bool) -> Callable[[Sample], float | None]:
    def read(sample: Sample) -> float | None:
        step_ns, batch = value(sample, name), sample.cell.batch
        if not step_ns or batch < 1:
            return None
        return float(step_ns / batch if over_batch else 1e9 * batch / step_ns)

    return read


TIME: dict[str, Any] = {"compare": "ratio", "words": TIME_WORDS, "is_time": True}
WITH_FASTER: dict[str, Any] = {"compare": "ratio", "words": TIME_WORDS, "runs": geometric_mean, "is_slowed": True}
_METRICS = [
    Metric("launches", "launches", "count", read=lambda sample: len(sample.good), runs=sum),
    Metric("failed", read=lambda sample: sum(launch.failure is not None for launch in sample.figures), runs=sum),
    Metric("step_ns", "step", "ns", step_times, read=_adjusted("step_ns", "raw_step_ns"), runs=geometric_mean,
           per_sample=True, shown="table", mark="is_disturbed", **TIME),
    Metric("raw_step_ns", "raw step", "ns", read=_raw_step_ns, runs=geometric_mean),
    Metric("latency_ns", "median", "ns", latencies, read=_latency_ns, runs=geometric_mean, mark="is_disturbed", **TIME),
    Metric("sample_ns", "time/sample", "ns", read=_per_batch("step_ns", True), runs=geometric_mean, shown="table"),
    Metric("p95_ns", "p95", "ns", read=lambda sample: sample.result.p95_ns, runs=geometric_mean),
    Metric("p99_ns", "p99", "ns", read=lambda sample: sample.result.p99_ns, runs=geometric_mean),
    Metric("samples_per_s", "samples/s", "number", read=_per_batch("step_ns", False), runs=geometric_mean,
           shown="table"),
    Metric("tokens", "tokens", "count", read=_tokens, runs=lambda values: values[0], part="rare"),
    Metric("token_ns", "time/token", "ns", _per_token(step_times), read=_of_step_per_token("step_ns"),
           runs=geometric_mean, part="rare", **TIME),
    Metric("tokens_per_s", "tokens/s", "number", read=_tokens_per_s, runs=geometric_mean, shown="table", part="rare"),
    Metric("energy_per_token_j", "J/1k tokens", "per_1k", _per_token(_step_joules), kind=_tier, needs_blocks=False,
           read=_of_step_per_token("energy_per_step_j"), runs=geometric_mean, compare="ratio", shown="table",
           part="rare"),
    Metric("start_ns", "start", "s", start_ns, read=_median_of_start(start_ns), mark="warm_start", **WITH_FASTER),
    Metric("compile_ns", "compile", "s", compile_ns, read=_median_of_start(compile_ns), shown="table",
           mark="warm_start", **WITH_FASTER),
    Metric("warm_start", read=lambda sample: any(map(sample.is_warm, sample.good)), runs=any),
    Metric("peak_memory_b", "peak memory", "b", _memory_b, max, runs=max, compare="ratio", mark="process_shared"),
    Metric("process_shared", observe=_is_shared, over=any, runs=any),
    Metric("energy_per_sample_j", "J/1k", "per_1k", _joules, runs=geometric_mean, compare="ratio", kind=_tier,
           needs_blocks=False, shown="table", mark="sustained_differs",
           read=_adjusted("energy_per_sample_j", "energy_raw_per_sample_j")),
    Metric("sustained_ns", "sustained step", "ns", runs=geometric_mean,
           read=lambda sample: None if (steps := _sustained(sample)) is None else steps.sustained_ns),
    Metric("sustained_differs", runs=any,
           read=lambda sample: bool(sample.cell.device != HOST and (steps := _sustained(sample)) and steps.differs)),
    Metric("cpu_per_sample_ns", "CPU s/1k", "s_per_1k", lambda sample, launch: _cpu_time(sample, [launch]),
           read=_cpu_per_sample_ns, runs=geometric_mean, compare="ratio", shown="table", is_slowed=True),
    Metric("cpus", "CPUs used", "hundredths", read=lambda sample: cpus_used(sample.good), runs=geometric_mean),
    Metric("injected_ratio", "injected", "gain_2", _injected_ratio, geometric_mean, runs=geometric_mean, shown="table"),
    Metric("drift_pct", "drift of the machine", "pct", read=_drift_pct, runs=_drift_of_runs,
           runs_of="step_ns"),
    Metric("level_se", read=lambda sample: (known := run_level(METRICS[sample.run.by], sample)) and known.se),
    Metric("rounds", read=lambda sample: len({launch.round for launch in sample.good}), runs=min),
    Metric("is_disturbed", read=lambda sample: sample.others_pct is not None, runs=any),
    Metric("cycles", "cycles", "count", runs=sum,
           read=lambda sample: sum(len(launch.blocks.cycle) for launch in sample.good)),
    Metric("contention_pct", read=lambda sample: sample.taken_pct, runs=max),
    Metric("empty_wait_ns", "empty wait", "ns", lambda _, launch: launch.empty_wait_ns, statistics.median),
    Metric("step_low_ns", read=lambda sample: _step_end_ns(sample, 0)),
    Metric("step_high_ns", read=lambda sample: _step_end_ns(sample, 1)),
    Metric("utilization_pct", "util %", "percent", read=_utilization_pct, part="rare"),
    Metric("cost_per_million", "cost/1M", "number", runs=geometric_mean, shown="table", part="rare"),
    *(
        Metric(f"energy_{name}", title, unit, read=_drawn(read), part="energy")
        for name, title, unit, read in (
            ("sensors", "", "", lambda drawn, _: " ".join(energy.sensor for energy in drawn[0].entries)),
            ("tier", "", "", lambda drawn, _: drawn[0].entries[0].tier),
            ("method", "", "", lambda drawn, _: drawn[0].entries[0].method),
            ("launches", "", "", lambda drawn, _: len(drawn)),
            ("block_ns", "", "", lambda drawn, _: sum(energy.block_ns for energy in drawn) / len(drawn)),
            ("error_share", "", "", lambda drawn, _: max(
                (energy.error_fraction for energy in drawn if energy.error_fraction is not None), default=None)),
            ("align_error_ns", "", "", lambda drawn, _: drawn[0].entries[0].align_error_ns),
            ("raw_per_sample_j", "", "", _raw_joules),
            ("with_package_per_sample_j", "device + package", "per_1k",
             lambda drawn, _: _mean_j(drawn, lambda energy: energy.with_host_w)),
            ("per_step_j", "J/step", "j", lambda drawn, sample: _raw_joules(drawn, sample) * sample.cell.batch),
            ("power_w", "W", "number", lambda drawn, _: sum(energy.joules_j for energy in drawn)
             / sum(energy.block_ns for energy in drawn) * 1e9),
            ("power_max_w", "peak W", "number", _highest_w),
            ("delay_product_js", "J·s/step", "digits", _delay_product),
            ("idle_w", "idle W", "number", lambda drawn, _: _mean(energy.idle_w for energy in drawn)),
            ("net_per_sample_j", "", "", lambda drawn, _: _mean_j(drawn, _net_w)),
            ("net_error_j", "", "", _net_error),
            ("compile_j", "compile J", "number", _compile_j),
            ("epoch_j", "J/epoch", "number", lambda _, sample: _fit_j(sample, per_epoch=True)),
            ("fit_j", "J/fit", "number", lambda _, sample: _fit_j(sample, per_epoch=False)),
        )
    ),
    Metric("fit_epochs", read=_fitted(lambda fits: fits[0][1].epochs), runs=lambda values: values[0], part="fit"),
    Metric("fit_updates", read=_fitted(lambda fits: fits[0][1].updates), runs=lambda values: values[0], part="fit"),
    Metric("fit_total_ns", "fit", "ns", read=_fit_total_ns, runs=geometric_mean, shown="table", part="fit"),
    Metric("fit_is_computed", read=_fitted(lambda fits: any(fit.is_part for _, fit in fits)), runs=any, part="fit"),
    Metric("fit_pipeline_ratio", "pipeline", "gain",
           lambda _, launch: None if launch.fit is None else pipeline_ratio(launch, launch.fit), geometric_mean,
           part="fit", **WITH_FASTER),
    Metric("fit_test_ns", "test pass", "ns", lambda _, launch: None if launch.fit is None else launch.fit.test_ns,
           statistics.fmean, part="fit", **WITH_FASTER),
    Metric("fit_metric", runs=lambda values: values[0], part="fit",
           read=_fitted(lambda fits: "accuracy" if fits[0][1].mean_squared_error is None else "mean_squared_error")),
    Metric("fit_score", observe=_score, read=lambda sample: _mean(repeats(sample)), runs=statistics.fmean,
           compare="difference", words=("lower", "higher"), matters=score_margin, needs_blocks=False, part="fit"),
    Metric("fit_score_sd", read=_score_sd, part="fit",
           runs=lambda sds: math.sqrt(statistics.fmean(sd**2 for sd in sds))),
    Metric("fit_repeats", read=lambda sample: len(repeats(sample)) if fits(sample) else None, runs=sum,
           part="fit"),
    *(
        Metric(f"reach_{name}", read=_reached(name), part="reach")
        for name in ("rate", "unit", "flops", "bytes", "bound", "share_pct", "ceiling", "ceiling_unit", "operation")
    ),
]  # fmt: skip
METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}


def _in_seconds(known_ns: float | None) -> float | None:
    return None if known_ns is None else known_ns / 1e9


def _if_task(task: Task, name: str) -> Callable[[Sample], Value | None]:
    return lambda sample: value(sample, name) if sample.cell.task == task else None


def _scored(name: str) -> Callable[[Sample, Launch], float | None]:
    """Return how a score is read of a launch's fit; null: the fit has no classes, or only a part of it ran."""

    def observe(_sample: Sample, launch: Launch) -> float | None:
        confusion = None if launch.fit is None else launch.fit.confusion
        return None if confusion is None else getattr(scores(confusion), name)

    return observe


# The columns of suites' own tables, by the names that published profiles use. Scores are observed in each repeat of a
# fit; a gain is made from the times of two cells where no document gives it.
_FIGURES = [
    Metric("train_time_s", "train time", "time_s", mark="fit_is_computed",
           read=lambda sample: _in_seconds(value(sample, "fit_total_ns"))),
    Metric("test_time_s", "test time", "time_s", read=lambda sample: _in_seconds(value(sample, "fit_test_ns"))),
    Metric("epoch_time_s", "epoch", "time_s", mark="fit_is_computed",
           read=lambda sample: _in_seconds(_mean(epoch_ns(launch, fit) for launch, fit in fits(sample)))),
    Metric("step_ns", "step", "ns", read=_if_task("train", "step_ns")),
    Metric("train_sample_ns", "train/sample", "ns", read=_if_task("train", "sample_ns")),
    Metric("infer_sample_ns", "infer/sample", "ns", read=_if_task("infer", "sample_ns")),
    Metric("accuracy", "accuracy %", "score", _scored("accuracy")),
    Metric("precision", "precision %", "score", _scored("macro_precision")),
    Metric("recall", "recall %", "score", _scored("macro_recall")),
    Metric("f1", "F1 %", "score", _scored("macro_f1")),
    Metric("train_gain_pct", "train gain", "times_pct"),
    Metric("test_gain_pct", "test gain", "times_pct"),
    Metric("train_sample_gain_pct", "train gain", "times_pct"),
    Metric("infer_sample_gain_pct", "infer gain", "times_pct"),
]  # fmt: skip
FIGURES: dict[str, Metric] = {metric.name: metric for metric in _FIGURES}


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
