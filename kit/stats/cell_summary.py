"""What a cell says over its launches: estimates where it was measured, reasons where it was not."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from kit.profile.cell import Cell
from kit.profile.launch import Launch, PhaseName
from kit.profile.schema import CellSummary, Estimate, LaunchSummary
from kit.stats.energy_per_sample import joules_per_sample
from kit.stats.interval import geometric_estimate, inverse, mean_estimate, scaled
from kit.stats.lost_cpus import lost_cpus

NANOSECONDS_PER_S = 1e9
# From a built program to its first result, however the framework divides that work.
COMPILE_PHASES: tuple[PhaseName, ...] = ("trace", "compile", "first_step")


def summarize_cell(cell: Cell, launches: Sequence[Launch], launch_summaries: Sequence[LaunchSummary]) -> CellSummary:
    """Summarize one cell; failed launches are left out.

    Args:
        cell: its coordinates.
        launches: its launches, in any order.
        launch_summaries: of those that finished; matched to launches by round.
    """
    finished = [launch for launch in launches if launch.failure is None]
    if not finished:
        return _nothing("every launch failed" if launches else "no launch finished")
    steady = [summary for summary in launch_summaries if summary.median_ns is not None]
    rounds = {summary.round for summary in steady}
    counted = [launch for launch in finished if launch.round in rounds]
    step = geometric_estimate([summary.median_ns for summary in steady if summary.median_ns is not None])
    p95 = geometric_estimate([summary.p95_ns for summary in steady if summary.p95_ns is not None])
    reasons: dict[str, str] = {}
    if step is None:
        no_steady = _no_number_reason(finished)
        reasons = dict.fromkeys(("step_ns", "step_p95_ns", "samples_per_s", "sample_ns", "warmup_steps"), no_steady)
    compile_ns = geometric_estimate([ns for launch in finished if (ns := _compile_ns(launch)) is not None])
    if compile_ns is None:
        reasons["compile_ns"] = "no launch recorded its first step"
    peaks = [launch.peak_memory_b for launch in finished if launch.peak_memory_b is not None]
    if not peaks:
        reasons["peak_memory_b"] = "no launch recorded its peak memory"
    warmups = [summary.warmup_steps for summary in steady if summary.warmup_steps is not None]
    return CellSummary(
        step_ns=step,
        step_p95_ns=p95,
        samples_per_s=inverse(step, cell.batch * NANOSECONDS_PER_S),
        sample_ns=scaled(step, 1 / cell.batch),
        compile_ns=compile_ns,
        warmup_steps=round(statistics.median(warmups)) if warmups else None,
        process_cpu_pct=_or_reason("process_cpu_pct", mean_estimate, counted or finished, _process_cpu_pct, reasons),
        peak_memory_b=max(peaks, default=None),
        joules_per_sample_j=_or_reason(
            "joules_per_sample_j",
            geometric_estimate,
            finished,
            lambda launch: joules_per_sample(cell, launch),
            reasons,
        ),
        accuracy=_or_reason("accuracy", mean_estimate, finished, _accuracy, reasons),
        reasons=reasons,
    )


def _or_reason(
    field: str,
    estimator: Callable[[Sequence[float]], Estimate | None],
    launches: Sequence[Launch],
    value_of: Callable[[Launch], tuple[float | None, str | None]],
    reasons: dict[str, str],
) -> Estimate | None:
    """Estimate over the launches that have the value; without any, note the first launch's reason."""
    found = [value_of(launch) for launch in launches]
    estimate = estimator([value for value, _ in found if value is not None])
    if estimate is None:
        reasons[field] = next((reason for _, reason in found if reason), "not recorded")
    return estimate


def _process_cpu_pct(launch: Launch) -> tuple[float | None, str | None]:
    if launch.utilization is None:
        return None, "the sampler recorded nothing"
    return launch.utilization.process_cpu_pct, launch.utilization.reasons.get("process_cpu_pct")


def _accuracy(launch: Launch) -> tuple[float | None, str | None]:
    if launch.evaluation is None:
        return None, "not evaluated"
    return launch.evaluation.accuracy, launch.evaluation.reason


def _compile_ns(launch: Launch) -> int | None:
    durations = {phase.name: phase.duration_ns for phase in launch.phases}
    if "first_step" not in durations:
        return None
    return sum(durations.get(name, 0) for name in COMPILE_PHASES)


def _no_number_reason(finished: Sequence[Launch]) -> str:
    count = len(finished)
    lost = [kept_away for launch in finished if (kept_away := lost_cpus(launch)) is not None]
    stopped = [share for to, share in lost if to == "limit"]
    taken = [share for to, share in lost if to == "others"]
    found = []
    if stopped:
        found.append(f"a CPU limit stopped the CPUs for {_mean_pct(stopped)} of the time in {len(stopped)}")
    if taken:
        found.append(f"other work took {_mean_pct(taken)} of the CPUs in {len(taken)}")
    if not found:
        return "no steady state in its one launch" if count == 1 else f"no steady state in any of {count} launches"
    found[0] += f" of {count} launches"
    if unsteady := count - len(lost):
        found.append(f"no steady state in {unsteady}")
    return ", and ".join(found)


def _mean_pct(shares: Sequence[float]) -> str:
    return f"{100 * statistics.fmean(shares):.0f} %"


def _nothing(reason: str) -> CellSummary:
    fields = [field for field in CellSummary.__struct_fields__ if field != "reasons"]
    return CellSummary(**dict.fromkeys(fields), reasons=dict.fromkeys(fields, reason))
