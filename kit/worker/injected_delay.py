"""An injected delay: steps that take a known share longer than they would, to see whether a comparison finds it.

    step ▒│ step ▒│ step ▒│      ▒ busy-wait of a share of the time since the last wait, within the step's stamps

The share is of the step's own time: a pace taken once would be another share of every other step. The wait spins: a
step that slept would let the processor rest, which a slower program does not.
"""

from __future__ import annotations

from kit.backends.protocol import DeviceBatch, StepOutput, Stepping
from kit.clock import now_ns


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
