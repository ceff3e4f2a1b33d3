"""The step loop: one stamp between steps, and nothing else.

    stamp  step 0  stamp  step 1  stamp  step 2  stamp
      └──────────────┴──────────────┴──────────────┘
          one interval a step; together they leave no gap

A step is the framework's step and the wait for its end. The loop makes no Python object per step and takes no decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from statistics import median
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kit.backends.protocol import DeviceBatch, Output
from kit.clock import Stamps, now_ns
from kit.profile.clock import Calibration
from kit.profile.launch import StepPlan

# A gap is left for a warm-up that speeds up: the pace is taken from its last steps only.
PACE_STEPS = 10


class Stepping(Protocol):
    """What the loop needs of a program (`kit.backends.protocol.Program`)."""

    def step(self, batch: DeviceBatch) -> Output:
        """Begin one step."""

    def synchronize(self) -> None:
        """Wait until it has ended."""


class Stretch(NamedTuple):
    """Consecutive steps: how long each took (ns, one a step), and what the last one gave."""

    step_ns: NDArray[np.int64]
    last_output: Output


def run_steps(
    program: Stepping, batches: Iterator[DeviceBatch], steps: int, stamps: Stamps, calibration: Calibration | None
) -> Stretch:
    """Run exactly `steps` steps, at least one."""
    step, synchronize, stamp = program.step, program.synchronize, stamps.stamp
    output = None
    stamp()
    for batch in islice(batches, steps):
        output = step(batch)
        synchronize()
        stamp()
    return Stretch(stamps.intervals_ns(calibration), output)


def warm_up(
    program: Stepping,
    batches: Iterator[DeviceBatch],
    plan: StepPlan,
    stamps: Stamps,
    calibration: Calibration | None,
) -> Stretch:
    """Run until `plan.warmup_s` have gone and `plan.warmup_steps_min` steps are done, at most `plan.steps_max`."""
    step, synchronize, stamp = program.step, program.synchronize, stamps.stamp
    output = None
    end_ns = now_ns() + round(plan.warmup_s * 1e9)
    stamp()
    for done, batch in enumerate(islice(batches, plan.steps_max), start=1):
        output = step(batch)
        synchronize()
        stamp()
        if done >= plan.warmup_steps_min and now_ns() >= end_ns:
            break
    return Stretch(stamps.intervals_ns(calibration), output)


def steady_steps(warmup_ns: NDArray[np.int64], plan: StepPlan) -> int:
    """How many steps fill `plan.steady_s` at the pace of the last warm-up steps, within the plan's bounds."""
    pace_ns = median(warmup_ns[-PACE_STEPS:].tolist())
    return int(np.clip(plan.steady_s * 1e9 / max(pace_ns, 1), plan.steps_min, plan.steps_max))
