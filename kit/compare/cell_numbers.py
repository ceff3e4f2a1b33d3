"""The numbers and marks of one cell, from its launches or from several runs."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from kit.compare.clean_cycles import DEVICE_OTHERS
from kit.compare.cpu_loss import cpu_loss
from kit.compare.energy import energy_numbers
from kit.compare.fits import fit_numbers
from kit.compare.launch_arrays import block_arrays, counted, cpus_used, sustained_step
from kit.compare.rows import FitNumbers, Numbers
from kit.profile.cell import Cell
from kit.profile.launch import INJECTED_NS, Launch
from kit.profile.reason import Reason, reason
from kit.profile.schema import CellResult, Profile
from kit.profile.sensor import SensorSummary
from kit.stats.difference import level_interval, step_level
from kit.stats.rounds import By, launch_time_ns, mean_step_ns

COMPILE_PHASES = ("trace", "compile", "first_step")
# Of the process, and of a program in it: from nothing to the first step done.
PROCESS_PHASES = ("start", "import")
START_PHASES = (*PROCESS_PHASES, "data", "build", *COMPILE_PHASES)
# Of several runs their geometric mean.
MEANS = (
    "step_ns", "raw_step_ns", "latency_ns", "sample_ns", "p95_ns", "p99_ns", "samples_per_s", "start_ns", "compile_ns",
    "energy_per_sample_j", "sustained_ns", "cpu_per_sample_ns", "cpus", "injected_ratio",
)  # fmt: skip


# (round, process) -> key of each cell that it held -> when the cell's first step began; null: it had none.
Processes = Mapping[tuple[int, str], Mapping[str, int | None]]


def processes_shared(profile: Profile) -> Processes:
    """Return which cells the processes of a profile's launches held."""
    held: dict[tuple[int, str], dict[str, int | None]] = defaultdict(dict)
    for result in profile.cells:
        for launch in result.launches:
            cells = held[launch.round, launch.process]
            if cells.get(result.key) is None:
                begins_ns = (phase.begin_ns for phase in launch.phases if phase.name == "first_step")
                cells[result.key] = next(begins_ns, None)
    return held


def numbers_of(
    result: CellResult,
    launches: Sequence[Launch],
    processes: Processes,
    shown_ns: float | None = None,
    by: By = "step",
    *,
    others_pct: float | None = None,
    details: bool = True,
) -> Numbers:
    """Return the numbers of a cell; those that no launch gave are null.

    Args:
        result: the cell.
        launches: that its figures come from, the failed included.
        processes: from `processes_shared`.
        shown_ns: from `Pairs.shown_ns`; null: the cell's own level.
        by: what the group is compared by.
        others_pct: of a cell without a clean cycle: what others took during its figures.
        details: phases, counters and sensors, too; they take half of the time.
    """
    cell, good = result.cell, [launch for launch in launches if launch.gave_number]
    failed = sum(launch.failure is not None for launch in launches)
    if not good:
        return Numbers(launches=0, failed=failed)
    blocks = [block_arrays(launch) for launch in good]
    # A fit runs in stretches of its own lengths: its step is that of the whole.
    steps_ns = [mean_step_ns(of_launch) if cell.task == "fit" else launch_time_ns(of_launch) for of_launch in blocks]
    raw_step_ns = geometric_mean(steps_ns)
    step_ns = raw_step_ns if shown_ns is None else shown_ns
    judged = steps_ns if by == "step" or cell.task == "fit" else [launch_time_ns(of, by) for of in blocks]
    by_round, judged_by_round = defaultdict[int, list[float]](list), defaultdict[int, list[float]](list)
    for launch, launch_ns, judged_of_launch_ns in zip(good, steps_ns, judged, strict=True):
        by_round[launch.round].append(launch_ns)
        judged_by_round[launch.round].append(judged_of_launch_ns)
    interval, level = level_interval(by_round.values()), step_level(judged_by_round.values())
    scale = step_ns / raw_step_ns if step_ns and raw_step_ns else 1.0
    compile_ns = [ns for launch in good if (ns := compile_first_ns(launch))]
    sustained = sustained_step(good)
    energy = energy_numbers(cell, [launch for launch in launches if launch.failure is None])
    lost = cpu_loss(cell, good)
    contention_pct = lost.contention_pct if lost is not None and lost.is_contended else None
    start_ns = [start for launch in good if (start := _start_ns(launch, processes)) is not None]
    return Numbers(
        launches=len(good),
        failed=failed,
        step_ns=step_ns,
        raw_step_ns=raw_step_ns,
        latency_ns=_median_ns(good) if result.p50_ns is None else result.p50_ns,
        sample_ns=step_ns / cell.batch if step_ns is not None and cell.batch > 0 else None,
        step_interval_ns=None if interval is None else (interval[0] * scale, interval[1] * scale),
        p95_ns=result.p95_ns,
        p99_ns=result.p99_ns,
        samples_per_s=1e9 * cell.batch / step_ns if step_ns and cell.batch > 0 else None,
        start_ns=statistics.median(start_ns) if start_ns else None,
        compile_ns=statistics.median(compile_ns) if compile_ns else None,
        warm_start=any(_is_warm(launch, processes) for launch in good),
        peak_memory_b=_peak_memory_b(cell, good),
        process_shared=any(len(processes.get((launch.round, launch.process), ())) > 1 for launch in good),
        energy_per_sample_j=None if energy is None else energy.per_sample_j,
        energy=energy,
        sustained_ns=None if sustained is None else sustained.sustained_ns,
        sustained_differs=cell.device != "cpu" and sustained is not None and sustained.differs,
        cpu_per_sample_ns=_cpu_per_sample_ns(cell, good),
        cpus=cpus_used(good),
        injected_ratio=geometric_mean(map(_injected_ratio, good)),
        drift_pct=_drift_pct(steps_ns),
        level_se=None if level is None else level.se,
        rounds=len(by_round),
        is_disturbed=others_pct is not None,
        cycles=sum(len(launch.blocks.cycle) for launch in good),
        contention_pct=contention_pct if others_pct is None else max(others_pct, contention_pct or 0.0),
        fit=fit_numbers(good, step_ns),
        empty_wait_ns=statistics.median(waits) if (waits := _empty_waits(good)) else None,
        phases_ns=phases_ns(good) if details else {},
        counters=counters_per_step(good) if details else {},
        sensors=_sensors(good) if details else {},
    )


def judged_ns(numbers: Numbers, by: By = "step") -> float | None:
    """Return what cells and runs are compared by: the whole time of a fit, else the time per sample, or per step."""
    if numbers.fit is not None:
        return numbers.fit.total_ns
    if by == "latency":
        return numbers.latency_ns
    return numbers.step_ns if numbers.sample_ns is None else numbers.sample_ns


def combined(runs: Sequence[Numbers]) -> Numbers:
    """Return the numbers of several runs: geometric means; peak memory is the largest, launches are summed."""
    if len(runs) == 1:
        return runs[0]
    numbers = Numbers(
        launches=sum(run.launches for run in runs),
        failed=sum(run.failed for run in runs),
        peak_memory_b=max((run.peak_memory_b for run in runs if run.peak_memory_b is not None), default=None),
        is_disturbed=any(run.is_disturbed for run in runs),
        cycles=sum(run.cycles for run in runs),
        process_shared=any(run.process_shared for run in runs),
        warm_start=any(run.warm_start for run in runs),
        sustained_differs=any(run.sustained_differs for run in runs),
        contention_pct=max((run.contention_pct for run in runs if run.contention_pct), default=None),
        fit=_combined_fits([run.fit for run in runs if run.fit is not None]),
        drift_pct=_drift_pct([run.step_ns for run in runs if run.step_ns]),
    )
    return msgspec.structs.replace(
        numbers, **{name: geometric_mean(getattr(run, name) for run in runs) for name in MEANS}
    )


def compile_first_ns(launch: Launch) -> int:
    """Return the time of a launch's trace, compilation and first step together."""
    return sum(phase.duration_ns for phase in launch.phases if phase.name in COMPILE_PHASES)


def phases_ns(launches: Iterable[Launch]) -> dict[str, float]:
    """Return each phase's median duration."""
    durations = defaultdict(list)
    for phase in (phase for launch in launches for phase in launch.phases):
        durations[phase.name].append(phase.duration_ns)
    return {name: statistics.median(times_ns) for name, times_ns in durations.items()}


def counters_per_step(launches: Sequence[Launch]) -> dict[str, float]:
    """Return each counter's growth per step, lead-in steps included; blocks whose read failed are left out."""
    names = dict.fromkeys(name for launch in launches for name in launch.blocks.counters if name != DEVICE_OTHERS)
    return {name: blocks.per_step[0] for name in names if (blocks := counted(launches, name)) is not None}


def launch_marks(cell: Cell, launch: Launch) -> list[Reason]:
    """Return what one launch was marked with when it ran, and what its counters say."""
    if not launch.gave_number:
        return []
    marks = {mark.code: mark for mark in launch.notes}
    lost, recompiles, certificate = cpu_loss(cell, [launch]), launch.recompiles, launch.certificate
    if lost is not None and lost.is_throttled:
        marks["throttled"] = reason("throttled", share_pct=lost.throttled_pct or 0.0)
    elif lost is not None and lost.is_contended:
        marks["contended"] = reason("contended", share_pct=lost.contention_pct)
    step_ns = min((median_ns for median_ns in launch.blocks.median_ns if median_ns is not None), default=math.inf)
    if certificate is not None and step_ns < certificate.shortest_step_ns:
        code = "step_too_short_for_clock"
        marks[code] = reason(code, step_ns=step_ns, shortest_ns=certificate.shortest_step_ns)
    if recompiles is not None and recompiles.count:
        marks.setdefault("recompiled", reason("recompiled", count=recompiles.count))
    if recompiles is not None and recompiles.graph_breaks:
        marks.setdefault("graph_breaks", reason("graph_breaks", count=recompiles.graph_breaks))
    return list(marks.values())


def first_failure(launches: Iterable[Launch]) -> Reason | None:
    """Return why the first launch that failed did."""
    return next((launch.failure.reason for launch in launches if launch.failure is not None), None)


def counted_marks(marks: Iterable[Reason]) -> list[Reason]:
    """Return each mark once, the gravest launch's values with it, and how many launches have it."""
    by_code = defaultdict(list)
    for mark in marks:
        by_code[mark.code].append(mark)

    def severity(mark: Reason) -> float:
        return max((value for value in mark.values.values() if isinstance(value, int | float)), default=0)

    worst = [(max(alike, key=severity), len(alike)) for alike in by_code.values()]
    return [msgspec.structs.replace(mark, values={**mark.values, "launches": count}) for mark, count in worst]


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of those above zero; null where there is none."""
    logs = [math.log(value) for value in values if value is not None and value > 0]  # nan is not
    return math.exp(sum(logs) / len(logs)) if logs else None


def _start_ns(launch: Launch, processes: Processes) -> int | None:
    """Return the time from the process's start to the first step done; of a later program of it, from its own data on.

    Null where the start of the process was not measured.
    """
    phases: dict[str, int] = {phase.name: phase.duration_ns for phase in launch.phases}
    if _is_warm(launch, processes):
        return sum(phases.get(name, 0) for name in START_PHASES if name not in PROCESS_PHASES)
    return sum(phases.get(name, 0) for name in START_PHASES) if "start" in phases else None


def _is_warm(launch: Launch, processes: Processes) -> bool:
    """Whether its process had run another program before."""
    begins_ns = processes.get((launch.round, launch.process), {})
    begin_ns = begins_ns.get(launch.cell_key)
    return begin_ns is not None and any(other is not None and other < begin_ns for other in begins_ns.values())


def _peak_memory_b(cell: Cell, launches: Sequence[Launch]) -> int | None:
    """Return the most memory of the cell's device that any launch held: of a CPU its process' resident set."""
    peaks = [launch.peak_memory_b if cell.device == "cpu" else launch.peak_device_memory_b for launch in launches]
    return max((peak for peak in peaks if peak is not None), default=None)


def _combined_fits(fits: Sequence[FitNumbers]) -> FitNumbers | None:
    """Return the means of the runs' fits; their spread is that within runs, the root of the mean of squares."""
    if not fits:
        return None
    means = {
        name: statistics.fmean(known)
        for name in ("total_ns", "pipeline_ratio", "test_ns", "score")
        if (known := [value for fit in fits if (value := getattr(fit, name)) is not None])
    }
    spreads = [fit.score_sd**2 for fit in fits if fit.score_sd is not None]
    return msgspec.structs.replace(
        fits[0],
        **means,
        score_sd=math.sqrt(statistics.fmean(spreads)) if spreads else None,
        repeats=sum(fit.repeats for fit in fits),
    )


def _injected_ratio(launch: Launch) -> float | None:
    """Return a launch's steps over what they would have been without the delay in them: the median over its blocks."""
    blocks = launch.blocks
    delays_ns = blocks.counters.get(INJECTED_NS)
    if delays_ns is None:
        return None
    spans_ns = np.asarray(blocks.span_ns, np.float64)
    return float(np.median(spans_ns / (spans_ns - [delay_ns or 0 for delay_ns in delays_ns])))


def _median_ns(launches: Iterable[Launch]) -> float | None:
    """Return the median of blocks' medians, each as often as it has steps; null where no step has its own time.

    Some profiles do not record the median of the steps themselves. No 95th percentile of the same steps
    lies below this one.
    """
    waited = [
        (median_ns, steps)
        for launch in launches
        for median_ns, steps in zip(
            launch.blocks.median_ns, launch.blocks.waited_steps or launch.blocks.steps, strict=True
        )
        if median_ns is not None
    ]
    if not waited:
        return None
    medians_ns, steps = np.asarray(sorted(waited), np.float64).T
    return float(medians_ns[np.searchsorted(np.cumsum(steps), steps.sum() / 2)])


def _empty_waits(launches: Iterable[Launch]) -> list[int]:
    return [launch.empty_wait_ns for launch in launches if launch.empty_wait_ns is not None]


def _cpu_per_sample_ns(cell: Cell, launches: Sequence[Launch]) -> float | None:
    used = counted(launches, "process.cpu_ns") if cell.batch > 0 else None
    return None if used is None else used.per_step[0] / cell.batch


def _drift_pct(steps_ns: Sequence[float]) -> float | None:
    return 100 * float(np.std(np.log(steps_ns), ddof=1)) if len(steps_ns) > 1 else None


def _sensors(launches: Sequence[Launch]) -> dict[str, SensorSummary]:
    summaries = defaultdict(list)
    for name, summary in (item for launch in launches for item in launch.sensors.items()):
        summaries[name].append(summary)
    return {
        name: SensorSummary(
            mean=statistics.fmean(summary.mean for summary in of_sensor),
            max=max(summary.max for summary in of_sensor),
            unit=of_sensor[0].unit,
            samples=sum(summary.samples for summary in of_sensor),
        )
        for name, of_sensor in summaries.items()
    }
