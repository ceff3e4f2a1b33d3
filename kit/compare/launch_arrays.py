"""Launches as arrays: what rules, comparisons, pictures and the question when to stop are computed from."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from statistics import geometric_mean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.profile.launch import Fit, Launch
from kit.stats.rounds import BlockArrays, launch_time_ns

# A board loaded for seconds has other clocks than in bursts between other members'. Joules are known to a percent.
SUSTAINED_LEAST_PCT = 2.0

Place = tuple[int, int]  # of a block: round and cycle


class Counted(NamedTuple):
    """Blocks of several launches in which every counter that was asked for could be read; arrays are (blocks,)."""

    steps: NDArray[Any]  # all that ran between the edges
    span_ns: NDArray[Any]
    values: list[NDArray[Any]]  # one array for each counter

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
    used_ns, spans_ns = 0, 0
    for blocks in (launch.blocks for launch in launches):
        for cpu_ns, span_ns in zip(blocks.counters.get("process.cpu_ns", ()), blocks.span_ns, strict=False):
            if cpu_ns is not None:
                used_ns, spans_ns = used_ns + cpu_ns, spans_ns + span_ns
    return used_ns / spans_ns if spans_ns else None


def sustained_step_ns(launch: Launch) -> float | None:
    """Return the step of the long block that joules are of; None where there was none, or its steps are not known."""
    blocks = ((energy.block_ns, energy.steps or 0) for energy in launch.energy if energy.kind == "steady")
    return next((block_ns / steps for block_ns, steps in blocks if block_ns > 0 and steps > 0), None)


def pipeline_ratio(launch: Launch, fit: Fit) -> float | None:
    """Return the time of the fit's steps over what as many resident steps took in the references around each block."""
    steps, references = np.asarray(launch.blocks.steps, float), np.asarray(fit.reference_ns)
    if len(references) != len(steps) + 1:
        return None
    predicted_ns = float(np.sum(steps * (references[:-1] + references[1:]) / 2))
    return sum(launch.blocks.duration_ns) / predicted_ns


def block_arrays(launch: Launch) -> BlockArrays:
    """Return the launch's blocks as `kit.stats` takes them."""
    blocks = launch.blocks
    return BlockArrays(*np.asarray((blocks.cycle, blocks.duration_ns, blocks.steps, blocks.median_ns), np.float64))


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
    both_ns = [
        (launch_time_ns(block_arrays(launch)), sustained_ns)
        for launch in launches
        if launch.gave_number and (sustained_ns := sustained_step_ns(launch)) is not None
    ]
    return SustainedStep(*map(geometric_mean, zip(*both_ns, strict=True))) if both_ns else None
