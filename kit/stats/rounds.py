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
# What blocks are timed by: whole time over steps, or the median of steps that were waited for one by one.
By = Literal["step", "latency"]
# Others may take this fraction of the usable CPUs' time in a clean block. On quiet machines blocks show up to 6 % (99
# of 100), which is the resolution of the kernel's ticks and the system's own work. With 5 % one quiet cycle in twenty
# would be measured again; with 20 % intervals beside neighbors were no narrower, and less often right
# (docs/explanation/method.md).
OTHERS_MOST = 0.10
# The mean over the clean cycles of a round, in which stray ticks cancel: quiet rounds had up to 4 %. A neighbor that
# always takes 9 % was seen in no block, and would make a ratio of unlike cells wrong by 15 % (bench_clean_bias.py).
OTHERS_MEAN_MOST = 0.05


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
