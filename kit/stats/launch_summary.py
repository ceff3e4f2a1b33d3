"""One launch in a few numbers: the median of its steady steps, which is what comparisons are made of."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from kit.profile.launch import Launch
from kit.profile.schema import LaunchSummary
from kit.stats.contention import is_contended
from kit.stats.lost_cpus import lost_cpus
from kit.stats.steady_state import SEGMENT_STEPS_MIN, find_steady_state

# Above this, neighbouring steps share most of what disturbs them, and the launch holds far fewer independent steps
# than it counts: a warning, not a verdict.
AUTOCORRELATION_WARN = 0.5


def summary_of(launch: Launch) -> LaunchSummary | None:
    """Summarize what a worker recorded; null of a launch that failed, or has no steps.

    A launch that did not have its CPUs keeps its verdict and gets no numbers: a CPU limit stopped it
    (`kit.stats.cpu_limit`), or other work had them (`kit.stats.contention`).
    """
    if launch.failure is not None or launch.step_ns is None:
        return None
    summary = summarize_launch(launch.step_ns, launch.warmup_steps, launch.round)
    lost = lost_cpus(launch)
    if lost is None:
        return summary
    share = f"{100 * lost.share:.0f} %"
    stopped, taken = f"a CPU limit stopped its CPUs for {share} of the time", f"other work took {share} of its CPUs"
    return msgspec.structs.replace(
        summary,
        median_ns=None,
        p95_ns=None,
        contended=is_contended(launch),
        reason=stopped if lost.to == "limit" else taken,
    )


def summarize_launch(step_ns: ArrayLike, warmup_steps: int, round: int) -> LaunchSummary:
    """Summarize one launch.

    Args:
        step_ns: shape (steps,), nanoseconds, from step 0.
        warmup_steps: steps before the steady phase began by the worker's own plan, step 0 included.
        round: the pass over the cells that the launch belongs to.

    Returns:
        Numbers over the steps that are steady both by the plan and by detection; none without a steady state.
    """
    times = np.asarray(step_ns, np.int64)
    verdict, start, reason = find_steady_state(times)
    steady = times[max(warmup_steps, start) :] if start is not None else times[:0]
    if steady.size < SEGMENT_STEPS_MIN:
        return LaunchSummary(
            round=round,
            verdict="no_steady_state",
            warmup_steps=None,
            steady_steps=0,
            median_ns=None,
            p95_ns=None,
            autocorrelation=None,
            reason=reason or f"too few steps come after the warm-up: {steady.size} of {SEGMENT_STEPS_MIN}",
        )
    return LaunchSummary(
        round=round,
        verdict=verdict,
        warmup_steps=start,
        steady_steps=int(steady.size),
        median_ns=round_ns(np.median(steady)),
        p95_ns=round_ns(np.percentile(steady, 95)),
        autocorrelation=lag_1_autocorrelation(steady.astype(np.float64)),
    )


def lag_1_autocorrelation(values: NDArray[np.float64]) -> float | None:
    """Correlation of each value with the one before it; null where the values do not vary."""
    centred = values - values.mean()
    variance = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / variance if variance > 0 else None


def round_ns(value: np.floating) -> int:
    """To whole nanoseconds: a fraction would be false precision."""
    return int(np.rint(value))
