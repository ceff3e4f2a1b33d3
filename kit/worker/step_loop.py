"""The step loop: steps and waits in the order in which the runner asked for them, and a stamp at each wait.

stamp  step wait  stamp  step wait  stamp  step step step wait  stamp  step step step wait  stamp
       └──── Segment(waits=2) ────┘        └───────── Segment(waits=2, per_wait=3) ───────┘

The loop makes no Python object per step, and reads no clock but for its stamps. Intervals between stamps leave no gap.
Its only decision is that a segment ends with the first stamp past its limit: the stamp itself compares.

Steps may get an injected delay: they take a known share longer than they would, to see whether a comparison finds it.

    step ▒│ step ▒│ step ▒│      ▒ busy-wait of a share of the time since the last wait, within the step's stamps

The share is of the step's own time: a pace taken once would be another share of every other step. The wait spins: a
step that slept would let the processor rest, which a slower program does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice, pairwise
from typing import NamedTuple

from kit.backends.protocol import DeviceBatch, StepOutput, Stepping
from kit.clock import Stamps, now_ns
from kit.profile.instruments import Calibration
from kit.worker.messages import Segment


class Ran(NamedTuple):
    """What came of some segments."""

    output: StepOutput  # of the last step
    waits: list[int]  # of each segment; one that passed its limit has fewer than were asked for


def run_segments(
    program: Stepping,
    batches: Iterator[DeviceBatch],
    segments: Iterable[Segment],
    stamps: Stamps,
    calibration: Calibration | None = None,
) -> Ran:
    """Run the segments, each to its end or to the first wait past its limit.

    Args:
        program: compiled.
        batches: of its steps; each step takes the next one.
        segments: with at least one step.
        stamps: with room for one more stamp than the segments have waits.
        calibration: of a clock that counts ticks.
    """
    step, synchronize, stamp = program.step, program.synchronize, stamps.stamp
    output, ends = None, [1]
    try:
        stamp()
        for waits, per_wait, limit_ns in segments:
            stamps.limit(limit_ns, calibration)
            if per_wait == 1:
                for batch in islice(batches, waits):
                    output = step(batch)
                    synchronize()
                    if stamp():
                        break
            else:
                for _ in range(waits):
                    for batch in islice(batches, per_wait):
                        output = step(batch)
                    synchronize()
                    if stamp():
                        break
            ends.append(stamps.count)
    except BaseException:
        # Steps before the one that failed may still run on the device; they must not reach into another worker's block.
        with suppress(Exception):
            synchronize()
        raise
    return Ran(output, [end - begin for begin, end in pairwise(ends)])


class InjectedDelay:
    """Steps of `steps` that take `slowdown_pct` longer.

    Attributes:
        injected_ns: the delay so far, as the clock saw it.
    """

    def __init__(self, steps: Stepping, slowdown_pct: float) -> None:
        self._steps = steps
        self._share = slowdown_pct / 100
        self._begin_ns: int | None = None  # of the first step since the last wait
        self.injected_ns = 0

    def step(self, batch: DeviceBatch) -> StepOutput:
        """Begin the program's step."""
        if self._begin_ns is None:
            self._begin_ns = now_ns()
        return self._steps.step(batch)

    def synchronize(self) -> None:
        """Wait for the steps, then for the delay."""
        self._steps.synchronize()
        if self._begin_ns is None:
            return
        done_ns = at_ns = now_ns()
        end_ns = done_ns + round(self._share * (done_ns - self._begin_ns))
        while at_ns < end_ns:
            at_ns = now_ns()
        self.injected_ns += at_ns - done_ns
        self._begin_ns = None
