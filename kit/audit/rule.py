"""A rule: a function that returns what it found, under decorators with its severity, remedy, limit and sentence.

    @rule("warning", "more_memory", at_least=MEMORY_PRESSURE_PCT)
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

from kit.audit.finding import Severity
from kit.audit.subject import MeasuredCell, MeasuredRun, NotMeasuredError
from kit.profile.fields import Reason, Value

Scope = Literal["cell", "group", "run", "runs"]
RuleDevices = Literal["any", "cpu", "accelerator"]
Codes = tuple[str, ...]
SCOPES: dict[object, Scope] = {
    MeasuredCell: "cell",
    Sequence[MeasuredCell]: "group",
    MeasuredRun: "run",
    Sequence[MeasuredRun]: "runs",
}
USUAL = Reason(code="usual")  # stands for the rule's own remedy


@dataclass(frozen=True)
class Found:
    """What a rule found of its subject. The rule's limit decides whether it becomes a finding."""

    values: Mapping[str, Value]  # the evidence, units in their names
    rank: float = 0.0  # percent of the time that it concerns
    _: KW_ONLY
    value: float | None = None  # what the limit is for; None: the rank
    code: str = ""  # of a further sentence of the rule; empty: the rule's name
    severity: Severity | None = None  # None: the rule's
    remedy: Reason | None = USUAL
    explains: Codes | None = None  # None: the rule's
    because: Reason | None = None  # what the profile has as the cause
    profile: str = ""  # label, where the subject is several runs
    cell_key: str = ""  # where the subject is more than a cell


Outcome = Found | NotMeasuredError | None
RuleAnswer = Found | None | Iterator[Outcome]
RuleCheck = TypeVar("RuleCheck", bound=Callable[[Any], RuleAnswer])


class Rule(NamedTuple):
    """One rule with what its decorators say."""

    name: str
    severity: Severity  # the worst that it may find
    scope: Scope
    on: RuleDevices
    at_least: float | None
    remedy: str | None  # code
    explains: Mapping[str, Codes]  # code of each of its findings -> codes that say less about the same
    check: Callable[[Any], RuleAnswer]


_RULES: list[Rule] = []
_SENTENCES: dict[str, str] = {}
_FURTHER: defaultdict[str, dict[str, Codes]] = defaultdict(dict)  # name of a rule -> its further codes


def rule(
    severity: Severity,
    remedy: str | None = None,
    *,
    on: RuleDevices = "any",
    at_least: float | None = None,
    explains: Codes = (),
) -> Callable[[RuleCheck], RuleCheck]:
    """Make a function a rule of its own name.

    Args:
        severity: the worst that it may find.
        remedy: code of what to try, unless `Found` has another remedy; its words are in `kit.audit.remedies`.
        on: kind of device that it is for.
        at_least: limit of `Found.value`, or else of its rank; None: the function decides.
        explains: codes that say less about the same and are left out beside its finding.
    """

    def register(check: RuleCheck) -> RuleCheck:
        name, argument = check.__name__, next(iter(get_type_hints(check).values()))
        codes = {name: explains, **_FURTHER[name]}
        _RULES.append(Rule(name, severity, SCOPES[argument], on, at_least, remedy, codes, check))
        return check

    return register


def says(sentence: str, *, code: str = "", explains: Codes = ()) -> Callable[[RuleCheck], RuleCheck]:
    """Give a rule its sentence: a template of the evidence, `{who}` (its cell or group) and `{because}`.

    With `code` it is the sentence of a further finding, which has that name and `explains` others.
    """

    def register(check: RuleCheck) -> RuleCheck:
        _SENTENCES[code or check.__name__] = sentence
        if code:
            _FURTHER[check.__name__][code] = explains
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
