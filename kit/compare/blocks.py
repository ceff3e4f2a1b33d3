"""The blocks of launches: their times and counters, and the step that joules belong to.

The step time of a block is its whole time over its steps, so stalls are in it; latency is the median of steps that were
waited for one by one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Sequence
from itertools import compress
from operator import add
from typing import Any, Literal, NamedTuple

from kit.profile.schema import Fit, Launch

BlockId = tuple[int, int]  # round and cycle
# What blocks are timed by: whole time over steps, or the median of steps that were waited for one by one.
By = Literal["step", "latency"]
# A GPU that is loaded for seconds has other clocks than in bursts between other cells'. Joules are known to a percent.
SUSTAINED_LEAST_PCT = 2.0


def block_times_ns(launch: Launch, by: By = "step") -> list[float]:
    """Return the time of each block of a launch; nan where no step was waited for by itself."""
    blocks = launch.blocks
    if by == "step":
        return [duration_ns / steps for duration_ns, steps in zip(blocks.duration_ns, blocks.steps, strict=True)]
    return [math.nan if median_ns is None else float(median_ns) for median_ns in blocks.median_ns]


def launch_time_ns(launch: Launch, by: By = "step") -> float:
    """Return the step time, or latency, of a launch: the median over its blocks; nan without blocks."""
    return middle(block_times_ns(launch, by))


def middle(values: Iterable[float]) -> float:
    """Return the median of those values that are above zero; nan where none is."""
    positive = [value for value in values if value > 0]
    return statistics.median(positive) if positive else math.nan


def mean_step_ns(launch: Launch) -> float:
    """Return the whole time of all blocks over their steps: of a fit, and what rare stalls add to; nan without any."""
    steps = sum(launch.blocks.steps)
    return sum(launch.blocks.duration_ns) / steps if steps else math.nan


class Counted(NamedTuple):
    """The blocks of several launches in which every counter that was asked for could be read, together."""

    steps: int  # all that ran between the edges of the blocks
    total_ns: float
    sums: list[float]  # how much each counter grew by

    @property
    def per_step(self) -> list[float]:
        """How much each counter grew by in a step."""
        return [grown / self.steps for grown in self.sums]


def counted(launches: Iterable[Launch], *names: str, within: Collection[BlockId] | None = None) -> Counted | None:
    """Return the blocks of these launches in which all counters of `names` were read; None where there are none.

    Args:
        launches: of one cell in one group.
        names: of counters.
        within: these blocks alone; None: all.
    """
    totals = [0] * (2 + len(names))
    for launch in launches:
        blocks = launch.blocks
        columns: list[Sequence[Any]] = [blocks.counters[name] for name in names if name in blocks.counters]
        if len(columns) < len(names):
            continue
        some_failed = any([None in column for column in columns])  # noqa: C419 - of one or two, a list is faster
        columns = [blocks.all_steps(), blocks.span_ns, *columns]
        if within is not None or some_failed:
            is_in = [within is None or (launch.round, cycle) in within for cycle in blocks.cycle]
            keep = [chosen and None not in row for chosen, *row in zip(is_in, *columns, strict=True)]
            columns = [[*compress(column, keep)] for column in columns]
        totals = [*map(add, totals, map(sum, columns))]
    steps, span_ns, *sums = totals
    return Counted(steps, float(span_ns), [*map(float, sums)]) if steps else None


def cpus_used(launches: Iterable[Launch]) -> float | None:
    """Return how many CPUs these launches kept busy in their blocks; None where that was not read."""
    blocks = counted(launches, "process.cpu_ns")
    return None if blocks is None else blocks.sums[0] / blocks.total_ns


def pipeline_ratio(launch: Launch, fit: Fit) -> float | None:
    """Return the time of the fit's steps over what as many resident steps took in the references around each block."""
    steps, reference_ns = launch.blocks.steps, fit.reference_ns
    if len(reference_ns) != len(steps) + 1:
        return None
    around = zip(steps, reference_ns[:-1], reference_ns[1:], strict=True)
    return sum(launch.blocks.duration_ns) / sum(count * (before + after) / 2 for count, before, after in around)


class SustainedStep(NamedTuple):
    """The step of the same launches in bursts, and in the long block that joules belong to."""

    burst_ns: float
    sustained_ns: float

    @property
    def difference_pct(self) -> float:
        """By how much the sustained step is longer."""
        return 100 * (self.sustained_ns / self.burst_ns - 1)

    @property
    def differs(self) -> bool:
        """Whether joules and samples/s belong to unlike steps."""
        return abs(self.difference_pct) >= SUSTAINED_LEAST_PCT


def sustained_step(launches: Iterable[Launch]) -> SustainedStep | None:
    """Return the geometric means over the launches that have both steps; None where none has."""
    both_ns = []
    for launch in (launch for launch in launches if launch.gave_number and launch.energy):
        long_blocks = ((energy.block_ns, energy.steps or 0) for energy in launch.energy if energy.kind == "steady")
        sustained_ns = next((block_ns / steps for block_ns, steps in long_blocks if block_ns > 0 and steps > 0), None)
        if sustained_ns is not None:
            both_ns.append((launch_time_ns(launch), sustained_ns))
    return SustainedStep(*map(statistics.geometric_mean, zip(*both_ns, strict=True))) if both_ns else None
