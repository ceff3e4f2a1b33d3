"""The step loop: one stamp between steps, and nothing else.

    stamp  step 0  stamp  step 1  stamp  step 2  stamp
      └──────────────┴──────────────┴──────────────┘
          one interval a step; together they leave no gap

A step is the framework's step and the wait for its end. The loop makes no Python object per step and takes no decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from statistics import median

import numpy as np
from numpy.typing import NDArray

from kit.backends.protocol import DeviceBatch, Output, Stepping
from kit.clock import Stamps, now_ns
from kit.profile.clock import Calibration

# After a warm-up that speeds up, and between blocks, the pace is that of the last steps.
PACE_STEPS = 10
# A block has at least one lead-in step and two timed ones, however long they are, and at most so many.
LEAD_IN_MIN = 1
TIMED_MIN = 2
STEPS_MAX = 200_000

StepTimes = NDArray[np.int64]


def run_steps(
    program: Stepping, batches: Iterator[DeviceBatch], steps: int, stamps: Stamps, calibration: Calibration | None
) -> tuple[StepTimes, Output]:
    """Run exactly `steps` steps, at least one; return the time of each in nanoseconds, and the last output."""
    step, synchronize, stamp = program.step, program.synchronize, stamps.stamp
    output = None
    stamp()
    for batch in islice(batches, steps):
        output = step(batch)
        synchronize()
        stamp()
    return stamps.intervals_ns(calibration), output


def run_until(  # noqa: PLR0917
    program: Stepping,
    batches: Iterator[DeviceBatch],
    seconds: float,
    steps_min: int,
    stamps: Stamps,
    calibration: Calibration | None,
    agree: Callable[[bool], bool] = bool,
) -> tuple[StepTimes, Output]:
    """Run until `seconds` have gone and `steps_min` steps are done, or the stamps are used up; as `run_steps`.

    `agree`: returns what rank 0 was given, so that all ranks end with one step.
    """
    step, synchronize, stamp = program.step, program.synchronize, stamps.stamp
    output = None
    end_ns = now_ns() + round(seconds * 1e9)
    stamp()
    for done, batch in enumerate(islice(batches, stamps.capacity - 1), start=1):
        output = step(batch)
        synchronize()
        stamp()
        if agree(done >= steps_min and now_ns() >= end_ns):
            break
    return stamps.intervals_ns(calibration), output


def run_for(
    program: Stepping,
    batches: Iterator[DeviceBatch],
    seconds: float,
    agree: Callable[[bool], bool] = bool,
    looks_every: int = 1,
) -> tuple[int, int, Output]:
    """Run until `seconds` have gone, each step waited for; return how many, how long they took, and the last output.

    Steps have no times of their own: however short they are, no stamps are used up. `agree`: as in `run_until`.
    `looks_every`: after so many steps it is asked whether they have gone.
    """
    step, synchronize = program.step, program.synchronize
    done, output, begin_ns = 0, None, now_ns()
    end_ns = begin_ns + round(seconds * 1e9)
    for batch in batches:
        output = step(batch)
        synchronize()
        done += 1
        if done % looks_every == 0 and agree(now_ns() >= end_ns):
            break
    return done, now_ns() - begin_ns, output


def block_steps(last_ns: StepTimes, lead_in_s: float, seconds: float) -> tuple[int, int]:
    """Return how many lead-in and how many timed steps fill a block, at the pace of the last steps before it.

    Args:
        last_ns: step times of this program's last block, or of its warm-up; shape (steps,).
        lead_in_s: not timed.
        seconds: lead-in and timed steps together.
    """
    pace_ns = max(1.0, median(last_ns[-PACE_STEPS:].tolist()))
    lead_in = max(LEAD_IN_MIN, math.ceil(lead_in_s * 1e9 / pace_ns))
    timed = round((seconds - lead_in_s) * 1e9 / pace_ns)
    return min(lead_in, STEPS_MAX), min(max(timed, TIMED_MIN), STEPS_MAX)
