"""What a rule sees: one cell of one group, its finished launches, and those of the others beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kit.audit.launch_arrays import Counted, counted
from kit.profile.cell import Cell, Variant
from kit.profile.launch import Launch
from kit.profile.schema import Profile


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
            key: {
                launch.round: launch
                for launch in results[key].launches
                if launch.group == group.key and launch.gave_number
            }
            for key in group.cells
            if key in results
        }
        for key, by_round in launches.items():
            if by_round:
                others = [
                    other_launches for other, other_launches in launches.items() if other != key and other_launches
                ]
                cell = results[key].cell
                yield Member(cell, group.key, by_round, others, variants.get(cell.variant))
