"""A rule: a function that returns what it found, under decorators with its severity, limit, remedy and sentence.

    @rule("warning", remedies.MORE_MEMORY, at_least=limits.MEMORY_PRESSURE_PCT)
    @says("{who}: some task waited for memory {some_pct:.1f} % of the time.")
    def memory_pressure(cell: MeasuredCell) -> Found:
        ...

It is called with each cell, with the cells of each group that has several (Sequence[MeasuredCell]), with each run
(MeasuredRun) or with all of several runs (Sequence[MeasuredRun]): the type of its argument says which. For what it
lacks it raises `NotMeasuredError`. The first line of its docstring, ``Find …``, is its line in docs/reference/audit,
and its section there has its name.
"""

from __future__ import annotations

import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

from kit.audit.finding import Finding, Severity
from kit.audit.subject import MeasuredCell, MeasuredRun, NotMeasuredError
from kit.profile.reason import Reason, Value

Scope = Literal["cell", "group", "run", "runs"]
Devices = Literal["any", "cpu", "accelerator"]
SCOPES: dict[object, Scope] = {
    MeasuredCell: "cell",
    Sequence[MeasuredCell]: "group",
    MeasuredRun: "run",
    Sequence[MeasuredRun]: "runs",
}
USUAL = Reason(code="usual")  # stands for the rule's own remedy


@dataclass(frozen=True)
class Remedy:
    """What to try: a code, and a template of the values that are given with it."""

    code: str
    words: str

    def __post_init__(self) -> None:
        """Register the words."""
        _REMEDIES[self.code] = self.words

    def given(self, **values: Value) -> Reason:
        """Return the remedy with its values."""
        return Reason(code=self.code, values=values)


@dataclass(frozen=True)
class Found:
    """What a rule found of its subject. The rule's limit decides whether it becomes a finding."""

    values: Mapping[str, Value]  # the evidence, units in their names
    rank: float = 0.0  # percent of the time that it concerns
    _: KW_ONLY
    value: float | None = None  # what the limit is for; None: the rank
    code: str = ""  # of the rule's `also`; empty: the rule's name
    severity: Severity | None = None  # None: the rule's
    remedy: Reason | None = USUAL
    explains: tuple[str, ...] | None = None  # None: the rule's
    because: Reason | None = None  # what the profile has as the cause
    profile: str = ""  # label, where the subject is several runs
    cell_key: str = ""  # where the subject is more than a cell


Outcome = Found | NotMeasuredError | None
Check = TypeVar("Check", bound=Callable[[Any], Outcome | Iterator[Outcome]])


class Also(NamedTuple):
    """A finding of a rule that has another name than the rule."""

    code: str
    severity: Severity
    explains: tuple[str, ...]


class Rule(NamedTuple):
    """One rule with what its decorator says."""

    name: str
    severity: Severity  # the worst that it may find
    scope: Scope
    on: Devices
    at_least: float | None
    remedy: Remedy | None
    explains: tuple[str, ...]
    also: list[Also]
    check: Callable[[Any], Outcome | Iterator[Outcome]]

    def applies(self, device: str) -> bool:
        """Return whether the rule is for cells on this kind of device."""
        return self.on == "any" or (self.on == "cpu") == (device == "cpu")

    def finding(self, evidence: Found, *, profile: str, group: str, cell_key: str) -> Finding | None:
        """Return the finding about this subject; None where it is within the limit."""
        if self.at_least is not None and (evidence.rank if evidence.value is None else evidence.value) < self.at_least:
            return None
        named = next((also for also in self.also if also.code == evidence.code), self)
        usual = None if self.remedy is None else self.remedy.given()
        return Finding(
            code=evidence.code or self.name,
            severity=evidence.severity or named.severity,
            values=dict(evidence.values),
            rank=evidence.rank,
            because=evidence.because,
            remedy=usual if evidence.remedy is USUAL else evidence.remedy,
            explains=named.explains if evidence.explains is None else evidence.explains,
            profile=evidence.profile or profile,
            group=group,
            cell_key=evidence.cell_key or cell_key,
            rule=self.name,
        )


_RULES: list[Rule] = []
_ALSO: defaultdict[str, list[Also]] = defaultdict(list)
_SENTENCES: dict[str, str] = {}
_REMEDIES: dict[str, str] = {}


def rule(
    severity: Severity,
    remedy: Remedy | None = None,
    *,
    on: Devices = "any",
    at_least: float | None = None,
    explains: tuple[str, ...] = (),
) -> Callable[[Check], Check]:
    """Make a function a rule of its own name.

    Args:
        severity: the worst that it may find.
        remedy: what to try, unless `Found` has another remedy.
        on: kind of device that it is for.
        at_least: limit of `Found.value`, or else of its rank; None: the function decides.
        explains: codes that say less about the same and are left out beside its finding.
    """

    def register(check: Check) -> Check:
        name, hints = check.__name__, get_type_hints(check)
        scope = SCOPES[next(iter(hints.values()))]
        _RULES.append(Rule(name, severity, scope, on, at_least, remedy, explains, _ALSO[name], check))
        return check

    return register


def says(sentence: str) -> Callable[[Check], Check]:
    """Give a rule its sentence: a template of the evidence, `{who}` (its cell or group) and `{because}`."""

    def register(check: Check) -> Check:
        _SENTENCES[check.__name__] = sentence
        return check

    return register


def also(code: str, severity: Severity, sentence: str, explains: tuple[str, ...] = ()) -> Callable[[Check], Check]:
    """Give a rule a further finding with a name, a severity and a sentence of its own."""

    def register(check: Check) -> Check:
        _SENTENCES[code] = sentence
        _ALSO[check.__name__].append(Also(code, severity, explains))
        return check

    return register


@cache
def all_rules() -> list[Rule]:
    """Return the rules of every file of this folder, by file and position in it."""
    package = __package__ or ""
    for module in pkgutil.iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")
    return sorted(_RULES, key=lambda rule: rule.check.__module__)


def sentences() -> dict[str, str]:
    """Return the template of every finding by its code."""
    all_rules()
    return _SENTENCES


def remedies() -> dict[str, str]:
    """Return the template of every remedy by its code."""
    all_rules()
    return _REMEDIES
