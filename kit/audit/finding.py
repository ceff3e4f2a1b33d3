"""Findings: what the counters say of a cell that its step time does not. One rule a file; this one asks them all.

A rule is a function `find(member) -> Finding | None` in a file of this folder. To add one, write its file, its
template in `kit.report.sentences` and its section in docs/findings.md.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module

from kit.audit.launch_arrays import Counted, counted
from kit.profile.cell import Cell, Variant
from kit.profile.launch import Launch
from kit.profile.reason import Reason, Value
from kit.profile.schema import Profile


@dataclass(frozen=True)
class Finding:
    """What a rule says of one cell in one group."""

    code: str  # also its anchor in docs/findings.md, with hyphens
    cell_key: str
    group: str  # in which it was measured
    values: Mapping[str, Value]  # the evidence, units in their names
    rank: float  # percent of the cell's time that it concerns: the larger, the earlier it is told
    remedy: Reason | None = None  # what to try; None: nothing that is known to help
    explains: tuple[str, ...] = ()  # codes that say less about the same and are left out beside this one

    @property
    def anchor(self) -> str:
        """The section of docs/findings.md."""
        return self.code.replace("_", "-")


@dataclass(frozen=True)
class Member:
    """What a rule sees: one cell of one group, and those beside it."""

    cell: Cell
    group: str  # its key
    launches: dict[int, Launch]  # that finished with blocks, by round; at least one
    others: list[dict[int, Launch]]  # the same of each other member of the group that has any
    variant: Variant | None = None  # the cell's, where the suite names it

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
        return counted(self.launches.values(), *names)

    def finding(
        self,
        code: str,
        values: Mapping[str, Value],
        rank: float,
        remedy: Reason | None = None,
        explains: tuple[str, ...] = (),
    ) -> Finding:
        """Return a finding of this member."""
        return Finding(code, self.cell.key, self.group, values, rank, remedy, explains)


def members(profile: Profile) -> Iterator[Member]:
    """Yield every cell of every group that has a finished launch in it."""
    results = {result.key: result for result in profile.cells}
    variants = {variant.name: variant for variant in profile.suite.variants}
    for group in profile.groups:
        finished: dict[str, dict[int, Launch]] = {}
        for key in group.cells:
            for launch in results[key].launches if key in results else ():
                if launch.group == group.key and launch.gave_number:
                    finished.setdefault(key, {})[launch.round] = launch
        for key, launches in finished.items():
            others = [of_other for other, of_other in finished.items() if other != key]
            cell = results[key].cell
            yield Member(cell, group.key, launches, others, variants.get(cell.variant))


def audit(profile: Profile) -> list[Finding]:
    """Return the findings of all rules, group by group in the profile's order, within a group by rank."""
    rules = discover()
    order = {group.key: place for place, group in enumerate(profile.groups)}
    findings: list[Finding] = []
    for member in members(profile):
        of_member = [finding for rule in rules if (finding := rule(member)) is not None]
        explained = {code for finding in of_member for code in finding.explains}
        findings += [finding for finding in of_member if finding.code not in explained]
    return sorted(findings, key=lambda finding: (order[finding.group], -finding.rank))


def discover() -> list[Callable[[Member], Finding | None]]:
    """Return the `find` of every file of this folder that has one, by name of file."""
    package = import_module(__package__)
    modules = (import_module(f"{__package__}.{module.name}") for module in pkgutil.iter_modules(package.__path__))
    return [module.find for module in modules if hasattr(module, "find")]
