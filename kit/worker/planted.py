"""A planted slow-down: steps that take a known share longer than they would, to see whether a comparison finds it.

    warm-up   step │ step │ step │               not slowed: their median is the launch's own pace
    steady    step ▒│ step ▒│ step ▒│            ▒ busy-wait of `slowdown_pct` of that pace, within the step's stamps

The wait spins: a step that slept would let the processor rest, which a slower program does not.
"""

from __future__ import annotations

from statistics import median

import numpy as np
from numpy.typing import NDArray

from kit.backends.protocol import DeviceBatch, Output
from kit.clock import now_ns
from kit.worker.step_loop import Stepping

# Of the warm-up, from its end: enough that single steps do not decide how long the wait is.
PACE_STEPS = 50


class Planted:
    """Steps of `steps`, each of which ends `wait_ns` later."""

    def __init__(self, steps: Stepping, wait_ns: int) -> None:
        self._steps = steps
        self._wait_ns = wait_ns

    def step(self, batch: DeviceBatch) -> Output:
        """The program's own step."""
        return self._steps.step(batch)

    def synchronize(self) -> None:
        """Wait for the step, then for the planted time."""
        self._steps.synchronize()
        end_ns = now_ns() + self._wait_ns
        while now_ns() < end_ns:
            pass


def wait_ns(warmup_ns: NDArray[np.int64], slowdown_pct: float) -> int:
    """How long a step must wait to be `slowdown_pct` slower than the last warm-up steps were.

    Args:
        warmup_ns: shape (steps,), nanoseconds, not slowed.
        slowdown_pct: percent of the pace.
    """
    pace_ns: float = median(warmup_ns[-PACE_STEPS:].tolist())
    return round(pace_ns * slowdown_pct / 100)
