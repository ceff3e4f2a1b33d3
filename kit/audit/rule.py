"""A rule: a function of a cell, a group, a profile or several, that finds something, finds nothing, or lacks something.

    @rule("member", worst="warning")
    def stalls(member: Member) -> Outcome:
        return a Finding, a Reason: what is missing, or None: nothing found

To add one, write it in a file of this folder, its sentence in `kit.report.sentences`, and its section in a page of
docs/reference/audit. The first line of its docstring, `Find …`, is its line in that folder's index.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec.structs import replace

from kit.audit.finding import Finding, Severity
from kit.compare.clean_cycles import CountedCycles, RoundCycles, count_cycles
from kit.compare.launch_arrays import Counted, counted
from kit.compare.modes import paired_rounds
from kit.profile.cell import Cell, Variant
from kit.profile.launch import Launch
from kit.profile.reason import Reason, Value, reason
from kit.profile.schema import CellResult, Profile

T = TypeVar("T")
# A reason: what is missing; None: nothing found.
Outcome = Finding | Reason | None | Sequence[Finding | Reason]
# What is not claimed need not be held to: neither a pass nor a miss.
NOT_APPLICABLE = Reason(code="not_applicable")
# "member": one cell in one group, with those beside it; "group": all of them; "fleet": all profiles that were given.
Scope = Literal["member", "group", "profile", "fleet"]
Devices = Literal["any", "cpu", "accelerator"]


class Rule(NamedTuple):
    """One rule."""

    name: str
    scope: Scope
    worst: Severity  # the gravest that it may find
    on: Devices
    also: tuple[str, ...]  # codes of its findings that have another name than the rule
    check: Callable[[Any], Outcome]

    def applies(self, device: str) -> bool:
        """Whether it is asked for cells of this kind of device."""
        return self.on == "any" or (self.on == "cpu") == (device == "cpu")


_RULES: dict[str, Rule] = {}


def rule(
    scope: Scope, *, worst: Severity, on: Devices = "any", also: tuple[str, ...] = ()
) -> Callable[[Callable[[Any], Outcome]], Any]:
    """Make a function a rule of its own name."""

    def registered(check: Callable[[Any], Outcome]) -> Callable[[Any], Outcome]:
        name = check.__name__
        _RULES[name] = Rule(name, scope, worst, on, also, check)
        return check

    return registered


@cache
def all_rules() -> list[Rule]:
    """Return the rules of every file of this folder, by file and place in it."""
    package = __package__ or ""
    for module in sorted(module.name for module in pkgutil.iter_modules(import_module(package).__path__)):
        import_module(f"{package}.{module}")
    return list(_RULES.values())


@dataclass(frozen=True)
class Member:
    """What a rule sees: one cell of one group, and those beside it."""

    cell: Cell
    group: str  # its key
    launches: dict[int, Launch]  # that finished, with the cycles that count, by round; at least one
    others: list[dict[int, Launch]]  # the same of each other member of the group that has any
    profile: Profile
    variant: Variant | None = None  # the cell's, where the suite names it
    all_launches: dict[int, Launch] = field(default_factory=dict)  # that finished, with all their cycles
    rounds: Mapping[int, RoundCycles] = field(default_factory=dict)  # of its group
    known: dict[object, Any] = field(default_factory=dict)  # of its group: what rules have computed, by what of

    def once(self, of: object, compute: Callable[[], T]) -> T:
        """Return what another rule, or this one for another member, has computed already; else compute it."""
        if of not in self.known:
            self.known[of] = compute()
        value: T = self.known[of]
        return value

    @cached_property
    def key(self) -> str:
        """The cell's."""
        return self.cell.key

    @property
    def paired_rounds(self) -> list[int]:
        """The rounds in which this one and all others took turns in blocks; none without others."""
        return paired_rounds(self.launches, self.others)

    def counted(self, *names: str) -> Counted | Reason:
        """Return the blocks of all launches with these counters' differences; where no block has them all, why."""
        blocks = self.once((self.key, names), lambda: counted(self.launches.values(), *names))
        return why_unread(self.profile, *names) if blocks is None else blocks

    def finding(  # noqa: PLR0917 - what a finding is made of
        self,
        code: str,
        severity: Severity,
        values: Mapping[str, Value],
        rank: float = 0.0,
        remedy: Reason | None = None,
        explains: tuple[str, ...] = (),
    ) -> Finding:
        """Return a finding of this member."""
        return Finding(
            code=code,
            severity=severity,
            values=dict(values),
            rank=rank,
            remedy=remedy,
            explains=explains,
            group=self.group,
            cell_key=self.key,
        )


@dataclass(frozen=True)
class Audited:
    """A profile with its label."""

    label: str
    profile: Profile
    all_cycles: bool = False  # cycles that others disturbed count, too

    @cached_property
    def counted(self) -> CountedCycles:
        """The profile with the cycles that count."""
        return count_cycles(self.profile, all_cycles=self.all_cycles)

    @cached_property
    def groups(self) -> list[list[Member]]:
        """The members of each group, those that have a launch with a number."""
        return list(groups_of(self.counted, self.profile))

    def without_launches(self) -> Audited:
        """Return what rules on fleets take: as small as a thousand of them need to be."""
        cells = [replace(result, launches=[]) for result in self.profile.cells]
        return Audited(self.label, replace(self.profile, cells=cells))

    @property
    def results(self) -> list[CellResult]:
        """The cells with everything that was measured of them."""
        return self.profile.cells


def groups_of(counted: CountedCycles, whole: Profile) -> Iterator[list[Member]]:
    """Yield, of every group, each cell that has a finished launch in it; `whole`: the profile with all cycles."""
    profile = counted.profile
    results = {result.key: result for result in profile.cells}
    every = {
        (launch.group, result.key, launch.round): launch
        for result in whole.cells
        for launch in result.launches
        if launch.gave_number
    }
    variants = {variant.name: variant for variant in profile.suite.variants}
    for group in profile.groups:
        finished: dict[str, dict[int, Launch]] = {}
        for key in group.cells:
            for launch in results[key].launches if key in results else ():
                if launch.group == group.key and launch.gave_number:
                    finished.setdefault(key, {})[launch.round] = launch
        members, known = [], dict[object, Any]()
        for key, launches in finished.items():
            others = [of_other for other, of_other in finished.items() if other != key]
            cell = results[key].cell
            rounds = counted.rounds.get(group.key, {})
            measured = {
                number: every[group.key, key, number]
                for number in rounds or launches
                if (group.key, key, number) in every
            }
            variant = variants.get(cell.variant)
            members.append(Member(cell, group.key, launches, others, profile, variant, measured, rounds, known))
        yield members


def why_unread(profile: Profile, *names: str) -> Reason:
    """Return why a profile has nothing of sensors: the first one's own reason, or that it was not recorded."""
    reports = {report.name: report for report in profile.sensors}
    for name in names:
        if name in reports and (why := reports[name].reason) is not None:
            return why
    return reason("not_recorded", what=", ".join(names))
