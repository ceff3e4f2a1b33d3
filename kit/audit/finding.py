"""Findings: what the counters say of a cell that its step time does not. One rule a file; this one asks them all.

A rule is a function `find(member) -> Finding | None` in a file of this folder. To add one, write its file, its
template in `kit.report.sentences` and its section in docs/findings.md.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from kit.audit.member import Member, members
from kit.profile.reason import Reason, Value
from kit.profile.schema import Profile

Rule = Callable[[Member], "Finding | None"]


@dataclass(frozen=True)
class Finding:
    """One thing found of one cell in one group.

    Attributes:
        code: what; also its anchor in docs/findings.md, with hyphens.
        cell_key: of which cell.
        group: measured in which group.
        values: the evidence, units in their names.
        rank: percent of the cell's time that it concerns: the larger, the earlier it is told.
        remedy: what to try; None: nothing that is known to help.
        explains: codes that say less about the same and are left out beside this one.
    """

    code: str
    cell_key: str
    group: str
    values: Mapping[str, Value]
    rank: float
    remedy: Reason | None = None
    explains: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The section of docs/findings.md."""
        return self.code.replace("_", "-")


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


def discover() -> list[Rule]:
    """Return the `find` of every file of this folder that has one, by name of file."""
    package = import_module(__package__)
    modules = (import_module(f"{__package__}.{module.name}") for module in pkgutil.iter_modules(package.__path__))
    return [module.find for module in modules if hasattr(module, "find")]
