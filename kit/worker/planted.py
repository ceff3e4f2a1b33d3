"""A planted slow-down: steps that take a known share longer than they would, to see whether a comparison finds it.

    step ▒│ step ▒│ step ▒│      ▒ busy-wait of `slowdown_pct` of the pace, within the step's stamps, itself timed

The wait spins: a step that slept would let the processor rest, which a slower program does not.
"""

from __future__ import annotations

from kit.backends.protocol import DeviceBatch, Output
from kit.clock import now_ns
from kit.worker.step_loop import Stepping


class Planted:
    """Steps of `steps`, each of which ends `wait_ns` later.

    Attributes:
        planted_ns: what was planted so far, as the clock saw it.
    """

    def __init__(self, steps: Stepping, wait_ns: int) -> None:
        self._steps = steps
        self._wait_ns = wait_ns
        self.planted_ns = 0

    def step(self, batch: DeviceBatch) -> Output:
        """Begin the program's own step."""
        return self._steps.step(batch)

    def synchronize(self) -> None:
        """Wait for the step, then for the planted time."""
        self._steps.synchronize()
        begin_ns = now_ns()
        end_ns = begin_ns + self._wait_ns
        while (at_ns := now_ns()) < end_ns:
            pass
        self.planted_ns += at_ns - begin_ns
