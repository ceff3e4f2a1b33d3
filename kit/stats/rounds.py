"""What one round says of its members: each one's step, and the ratio of two.

cycle     1      2      3      4       blocks of one cycle ran within a second of each other, so the drift of the
a        2.1    2.4    2.2    2.1 ms   machine is in both and cancels in the ratio within the cycle:
b        3.1    3.6    3.4    3.2 ms   ln 2.1/3.1, ln 2.4/3.6, ...; their median is the round's ratio
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class BlockArrays(NamedTuple):
    """The blocks of one member in one round; all arrays have the shape (blocks,)."""

    cycle: Array
    median_ns: Array  # of the block's timed steps
    duration_ns: Array  # of all timed steps together
    steps: Array  # timed


class RoundRatio(NamedTuple):
    """The natural logarithm of the step of one member over that of another, in one round."""

    log_ratio: float  # by the medians of blocks
    whole_log_ratio: float  # by the mean timed step, which also sees stalls that a median does not


def launch_step_ns(median_ns: Array) -> float:
    """Return the step of a launch: the median over blocks of the block's median step; nan without blocks."""
    return float(np.median(median_ns)) if len(median_ns) else float("nan")


def round_ratio(a: BlockArrays, b: BlockArrays, *, paired: bool) -> RoundRatio | None:
    """Return the ratio of two members of one round, or None where they have no common cycle.

    Args:
        a: the numerator: a positive logarithm says that it is slower.
        b: the denominator.
        paired: they took turns in blocks. Otherwise each ran alone, equal cycles are no neighbours in time, and the
            ratio is that of the medians over all blocks.
    """
    a, b = _timed(a), _timed(b)
    if paired:
        _, in_a, in_b = np.intersect1d(a.cycle, b.cycle, return_indices=True)
        a, b = _take(a, in_a), _take(b, in_b)
    if not len(a.cycle) or not len(b.cycle):
        return None
    if paired:
        log_ratio = np.median(np.log(a.median_ns / b.median_ns))
    else:
        log_ratio = np.log(launch_step_ns(a.median_ns) / launch_step_ns(b.median_ns))
    mean_a_ns, mean_b_ns = (np.sum(one.duration_ns, dtype=np.float64) / np.sum(one.steps) for one in (a, b))
    return RoundRatio(float(log_ratio), float(np.log(mean_a_ns / mean_b_ns)))


def _timed(blocks: BlockArrays) -> BlockArrays:
    """Return the blocks in which a step was timed."""
    return _take(blocks, (blocks.median_ns > 0) & (blocks.duration_ns > 0) & (blocks.steps > 0))


def _take(blocks: BlockArrays, chosen: Array) -> BlockArrays:
    return BlockArrays(*(array[chosen] for array in blocks))
