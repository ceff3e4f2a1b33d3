"""What one round says of its members: each one's step time, and the ratio of two.

cycle     1      2      3      4       blocks of one cycle ran within a second of each other, so the drift of the
a        2.1    2.4    2.2    2.1 ms   machine is in both and cancels in the ratio within the cycle:
b        3.1    3.6    3.4    3.2 ms   ln 2.1/3.1, ln 2.4/3.6, ...; their median is the round's ratio

The step time of a block is its whole time over its steps, so stalls are in it; latency is the median of steps that were
waited for one by one.
"""

from __future__ import annotations

import math
import statistics
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# What members are compared by.
By = Literal["step", "latency"]


class BlockArrays(NamedTuple):
    """The blocks of one member in one round; all arrays have the shape (blocks,)."""

    cycle: Array
    duration_ns: Array  # of the steps timed together
    steps: Array
    latency_ns: Array  # median of steps that were waited for one by one; nan: none was

    def times_ns(self, by: By) -> Array:
        """Return what the blocks are compared by; nan or 0 where a block has none."""
        return self.duration_ns / np.maximum(self.steps, 1) if by == "step" else self.latency_ns


def launch_time_ns(blocks: BlockArrays, by: By = "step") -> float:
    """Return the step time, or latency, of a launch: the median over its blocks; nan without blocks."""
    # Of the few blocks of a launch, statistics.median takes a tenth of the time of NumPy's.
    times_ns = [time_ns for time_ns in blocks.times_ns(by).tolist() if time_ns > 0]
    return statistics.median(times_ns) if times_ns else math.nan


def mean_step_ns(blocks: BlockArrays) -> float:
    """Return the whole time of all blocks over their steps: of a fit, and what rare stalls add to; nan without any."""
    steps = float(np.sum(blocks.steps))
    return float(np.sum(blocks.duration_ns, dtype=np.float64)) / steps if steps else math.nan


def round_log_ratio(a: BlockArrays, b: BlockArrays, *, paired: bool, by: By = "step") -> float | None:
    """Return the natural logarithm of the time of `a` over that of `b` in one round; None without a common cycle.

    Args:
        a: the numerator: a positive logarithm says that it is slower.
        b: the denominator.
        paired: they took turns in blocks. Otherwise each ran alone, equal cycles are no neighbours in time, and the
            ratio is that of the launches.
        by: step time or latency.
    """
    if paired:
        log_ratios = cycle_log_ratios(a, b, by)
        return statistics.median(log_ratios.tolist()) if log_ratios.size else None
    log_ratio = float(np.log(launch_time_ns(a, by) / launch_time_ns(b, by)))
    return log_ratio if np.isfinite(log_ratio) else None


def cycle_log_ratios(a: BlockArrays, b: BlockArrays, by: By = "step") -> NDArray[np.float64]:
    """Return the log-ratio within each common cycle, in order of cycle; shape (cycles,)."""
    a_ns, b_ns = a.times_ns(by), b.times_ns(by)
    if not np.array_equal(a.cycle, b.cycle):
        _, in_a, in_b = np.intersect1d(a.cycle, b.cycle, return_indices=True)
        a_ns, b_ns = a_ns[in_a], b_ns[in_b]
    timed = (a_ns > 0) & (b_ns > 0)
    log_ratios: NDArray[np.float64] = np.log(a_ns[timed] / b_ns[timed])
    return log_ratios
