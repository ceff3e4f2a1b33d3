"""Launches as arrays: what rules, comparisons, pictures and the question when to stop are computed from.

The step time of a block is its whole time over its steps, so stalls are in it; latency is the median of steps that were
waited for one by one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.profile.launch import Fit, Launch

Array = NDArray[Any]
Place = tuple[int, int]  # of a block: round and cycle
# What blocks are timed by: whole time over steps, or the median of steps that were waited for one by one.
By = Literal["step", "latency"]
# A board loaded for seconds has other clocks than in bursts between other members'. Joules are known to a percent.
SUSTAINED_LEAST_PCT = 2.0


class BlockArrays(NamedTuple):
    """The blocks of one member in one round; all arrays have the shape (blocks,)."""

    cycle: Array
    duration_ns: Array  # of the steps timed together
    steps: Array
    latency_ns: Array  # median of steps that were waited for one by one; nan: none was

    def times_ns(self, by: By) -> Array:
        """Return what the blocks are compared by; nan or 0 where a block has none."""
        return self.duration_ns / np.maximum(self.steps, 1) if by == "step" else self.latency_ns


def block_arrays(launch: Launch) -> BlockArrays:
    """Return the blocks of a launch."""
    blocks = launch.blocks
    return BlockArrays(*np.asarray((blocks.cycle, blocks.duration_ns, blocks.steps, blocks.median_ns), np.float64))


def launch_time_ns(blocks: BlockArrays, by: By = "step") -> float:
    """Return the step time, or latency, of a launch: the median over its blocks; nan without blocks."""
    # Of the few blocks of a launch, statistics.median takes a tenth of the time of NumPy's.
    times_ns = [time_ns for time_ns in blocks.times_ns(by).tolist() if time_ns > 0]
    return statistics.median(times_ns) if times_ns else math.nan


def mean_step_ns(blocks: BlockArrays) -> float:
    """Return the whole time of all blocks over their steps: of a fit, and what rare stalls add to; nan without any."""
    steps = float(np.sum(blocks.steps))
    return float(np.sum(blocks.duration_ns, dtype=np.float64)) / steps if steps else math.nan


class Counted(NamedTuple):
    """Blocks of several launches in which every counter that was asked for could be read; arrays are (blocks,)."""

    steps: Array  # all that ran between the edges
    span_ns: Array
    values: list[Array]  # one array for each counter

    @property
    def sums(self) -> list[float]:
        """How much each counter grew by."""
        return [float(values.sum()) for values in self.values]

    @property
    def per_step(self) -> list[float]:
        """How much each counter grew by in a step."""
        return [total / float(self.steps.sum()) for total in self.sums]


def counted(launches: Iterable[Launch], *names: str, within: Collection[Place] | None = None) -> Counted | None:
    """Return the blocks of these launches in which all counters of `names` were read; None where there are none.

    Args:
        launches: of one cell in one group.
        names: of counters.
        within: these blocks alone; None: all.
    """
    read = [launch for launch in launches if all(name in launch.blocks.counters for name in names)]
    if not read:
        return None
    tables = [
        np.asarray([blocks.all_steps(), blocks.span_ns, *(blocks.counters[name] for name in names)], np.float64)
        for blocks in (launch.blocks for launch in read)
    ]
    table = np.concatenate(tables, axis=1)
    keep = np.asarray(~np.isnan(table).any(axis=0))
    if within is not None:
        places = ((launch.round, cycle) for launch in read for cycle in launch.blocks.cycle)
        keep &= np.asarray([place in within for place in places], np.bool_)
    if not keep.any():
        return None
    steps, span_ns, *counter_values = table if keep.all() else table[:, keep]
    return Counted(steps, span_ns, counter_values)


def cpus_used(launches: Iterable[Launch]) -> float | None:
    """Return how many CPUs these launches kept busy in their blocks; None where that was not read."""
    blocks = counted(launches, "process.cpu_ns")
    return None if blocks is None or not blocks.span_ns.any() else blocks.sums[0] / float(blocks.span_ns.sum())


def pipeline_ratio(launch: Launch, fit: Fit) -> float | None:
    """Return the time of the fit's steps over what as many resident steps took in the references around each block."""
    steps, references = np.asarray(launch.blocks.steps, float), np.asarray(fit.reference_ns)
    if len(references) != len(steps) + 1:
        return None
    predicted_ns = float(np.sum(steps * (references[:-1] + references[1:]) / 2))
    return sum(launch.blocks.duration_ns) / predicted_ns


class SustainedStep(NamedTuple):
    """The step of the same launches in bursts, and in the long block that joules are of."""

    burst_ns: float
    sustained_ns: float

    @property
    def difference_pct(self) -> float:
        """By how much the sustained step is longer."""
        return 100 * (self.sustained_ns / self.burst_ns - 1)

    @property
    def differs(self) -> bool:
        """Whether joules and samples/s are of unlike steps."""
        return abs(self.difference_pct) >= SUSTAINED_LEAST_PCT


def sustained_step(launches: Iterable[Launch]) -> SustainedStep | None:
    """Return the geometric means over the launches that have both steps; None where none has."""
    both_ns = []
    for launch in (launch for launch in launches if launch.gave_number):
        long_blocks = ((energy.block_ns, energy.steps or 0) for energy in launch.energy if energy.kind == "steady")
        sustained_ns = next((block_ns / steps for block_ns, steps in long_blocks if block_ns > 0 and steps > 0), None)
        if sustained_ns is not None:
            both_ns.append((launch_time_ns(block_arrays(launch)), sustained_ns))
    return SustainedStep(*map(statistics.geometric_mean, zip(*both_ns, strict=True))) if both_ns else None
