"""What a rule sees: one cell of one group, its finished launches, and those of the others beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.profile.cell import Cell, Variant
from kit.profile.launch import Launch
from kit.profile.schema import Profile
from kit.stats.rounds import BlockArrays

Place = tuple[int, int]  # of a block: round and cycle


class Counted(NamedTuple):
    """Blocks of several launches in which every counter that was asked for could be read; arrays are (blocks,)."""

    steps: NDArray[Any]  # all that ran between the edges
    span_ns: NDArray[Any]
    values: list[NDArray[Any]]  # one array for each counter


@dataclass(frozen=True)
class Member:
    """One cell of one group.

    Attributes:
        cell: what was measured.
        group: key of the group.
        launches: that finished with blocks, by round; at least one.
        others: the same of each other member of the group that has any.
        variant: the cell's, where the suite names it.
    """

    cell: Cell
    group: str
    launches: dict[int, Launch]
    others: list[dict[int, Launch]]
    variant: Variant | None = None

    @property
    def paired_rounds(self) -> list[int]:
        """The rounds in which this one and all others took turns in blocks; none without others."""
        members = [self.launches, *self.others]
        return [
            number
            for number in (self.launches if self.others else ())
            if all(number in launches and launches[number].turns == "blocks" for launches in members)
        ]

    def counted(self, *names: str) -> Counted | None:
        """Return the blocks of all launches with these counters' differences; None where no block has them all."""
        return counted(list(self.launches.values()), *names)


def members(profile: Profile) -> Iterator[Member]:
    """Yield every cell of every group that has a finished launch in it."""
    results = {result.key: result for result in profile.cells}
    variants = {variant.name: variant for variant in profile.suite.variants}
    for group in profile.groups:
        launches = {
            key: {one.round: one for one in results[key].launches if one.group == group.key and one.gave_number}
            for key in group.cells
            if key in results
        }
        for key, own in launches.items():
            if own:
                others = [theirs for other, theirs in launches.items() if other != key and theirs]
                cell = results[key].cell
                yield Member(cell, group.key, own, others, variants.get(cell.variant))


def counted(launches: Sequence[Launch], *names: str, within: Collection[Place] | None = None) -> Counted | None:
    """Return the blocks of these launches in which all counters of `names` were read; None where there are none.

    Args:
        launches: of one cell in one group.
        names: of counters.
        within: these blocks alone; None: all.
    """
    rows = [
        (steps, span_ns, *values)
        for launch in launches
        if all(name in launch.blocks.counters for name in names)
        for cycle, steps, span_ns, *values in zip(
            launch.blocks.cycle,
            launch.blocks.all_steps(),
            launch.blocks.span_ns,
            *(launch.blocks.counters[name] for name in names),
            strict=False,
        )
        if None not in values and span_ns > 0 and steps > 0
        if within is None or (launch.round, cycle) in within
    ]
    if not rows:
        return None
    steps, span_ns, *values = np.asarray(rows, np.float64).T
    return Counted(steps, span_ns, values)


def block_arrays(launch: Launch) -> BlockArrays:
    """Return the launch's blocks as `kit.stats` takes them."""
    blocks = launch.blocks
    arrays = blocks.cycle, blocks.duration_ns, blocks.steps, blocks.median_ns
    return BlockArrays(*(np.asarray(values, np.float64) for values in arrays))
