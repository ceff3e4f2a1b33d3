"""What a cell's first launches teach about the rest: how long to warm up, and how long to measure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from kit.profile.launch import Launch, PhaseName, StepPlan
from kit.profile.schema import LaunchSummary
from kit.stats.launch_length import Pilot, steps_that_pay

# Three show a spread between launches, if a rough one; its square root is what counts.
PILOT_LAUNCHES = 3
# Against a launch that is slower to warm up than the pilots were.
WARMUP_MARGIN = 1.5
# The pilots are few: what they teach changes the suite's plan by this factor at most.
CHANGE_MAX = 4.0
# Of a cell's first launch only.
ONCE: tuple[PhaseName, ...] = ("evaluate", "parity", "observer")


def learned_steps(
    plan: StepPlan, steady_s_min: float, launches: Sequence[Launch], summaries: Sequence[LaunchSummary]
) -> StepPlan:
    """The cell's own plan, from its pilots; the suite's where fewer than two of them reached a steady state.

    Args:
        plan: of the suite, with which the pilots ran.
        steady_s_min: not to go below.
        launches, summaries: of the pilots, in the same order.
    """
    steady = [
        (launch, np.asarray(launch.step_ns, np.int64), summary.warmup_steps)
        for launch, summary in zip(launches, summaries, strict=True)
        if launch.step_ns is not None and summary.warmup_steps is not None
    ]
    if len(steady) < 2:  # noqa: PLR2004 - a spread takes two
        return plan
    # Step 0 has a phase of its own.
    warmup_s = max(float(step_ns[1:warmup].sum()) for _, step_ns, warmup in steady) / 1e9 * WARMUP_MARGIN
    pilots = [Pilot(step_ns[launch.warmup_steps :], _around_ns(launch)) for launch, step_ns, _ in steady]
    steps = steps_that_pay(pilots)
    step_s = float(np.mean([pilot.steady_ns.mean() for pilot in pilots])) / 1e9
    wanted_s = plan.steady_s * CHANGE_MAX if steps is None else steps * step_s
    return msgspec.structs.replace(
        plan,
        warmup_s=_within(warmup_s, plan.warmup_s),
        steady_s=max(_within(wanted_s, plan.steady_s), steady_s_min),
    )


def _around_ns(launch: Launch) -> int:
    """What every launch of the cell takes beside its steady steps."""
    return sum(phase.duration_ns for phase in launch.phases if phase.name not in (*ONCE, "steady"))


def _within(seconds: float, planned_s: float) -> float:
    return min(max(seconds, planned_s / CHANGE_MAX), planned_s * CHANGE_MAX)
