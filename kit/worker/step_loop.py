"""The step loop: steps and waits in the order in which the runner asked for them, and a stamp at each wait.

stamp  step wait  stamp  step wait  stamp  step step step wait  stamp  step step step wait  stamp
       └──── Segment(waits=2) ────┘        └───────── Segment(waits=2, per_wait=3) ───────┘

The loop makes no Python object per step, takes no decision, and reads no clock but for its stamps. Intervals between
stamps leave no gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from kit.backends.protocol import DeviceBatch, StepOutput, Stepping
from kit.clock import Stamps
from kit.worker.messages import Segment


def run_segments(
    program: Stepping, batches: Iterator[DeviceBatch], segments: Iterable[Segment], stamps: Stamps
) -> StepOutput:
    """Run the segments; return the output of the last step.

    Args:
        program: compiled.
        batches: of its steps; each step takes the next one.
        segments: with at least one step.
        stamps: with room for one more stamp than the segments have waits.
    """
    step, synchronize, stamp = program.step, program.synchronize, stamps.stamp
    output = None
    try:
        stamp()
        for waits, per_wait in segments:
            if per_wait == 1:
                for batch in islice(batches, waits):
                    output = step(batch)
                    synchronize()
                    stamp()
                continue
            for _ in range(waits):
                for batch in islice(batches, per_wait):
                    output = step(batch)
                synchronize()
                stamp()
    except BaseException:
        # Steps before the one that failed may still run on the device; they must not reach into another worker's block.
        with suppress(Exception):
            synchronize()
        raise
    return output
