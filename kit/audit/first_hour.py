"""The first hour on a device: which rules judge a profile of the suite `first-hour`, and what each says of it.

rule ──► fail (a warning, or worse) │ pass │ could not check, for some cells or for all
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import msgspec

from kit.audit.audit import audit
from kit.audit.finding import Finding
from kit.audit.rule import Found, Outcome, Rule, all_rules
from kit.audit.subject import MeasuredRun
from kit.profile.fields import Reason, reason
from kit.profile.schema import CellResult, Profile

SUITE = "first-hour"
# All rules on accelerators judge it but one, as a device that was idle until now warms up; and some on any device.
LEFT_OUT = ("device_still_warming",)
# A host that varies moves the short blocks of a small step by as much as clocks move those of a device under load.
UNDER_LOAD, SMALL = ("sustained_differs",), "mlp"
ON_ANY_DEVICE = (
    "idle_not_idle", "few_updates", "sensor_broken", "sampling_gaps", "missing_cell", "loss_not_finite", "parity",
)  # fmt: skip

Status = Literal["fail", "not_checked", "pass"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule says: of what it found, or of all cells together."""

    rule: str
    status: Status
    finding: Finding | None = None  # the evidence; of a pass the largest value within the limit, or a note
    reason: Reason | None = None  # why it could not be checked
    cells: int = 0  # for which it could not
    of_cells: int = 0


def first_hour(label: str, profile: Profile) -> list[Check]:
    """Return the checks of a profile, those that failed first, then those that could not be made."""
    rules = [
        rule
        for rule in all_rules()
        if rule.name in ON_ANY_DEVICE
        or (rule.on == "accelerator" and rule.scope in ("cell", "run") and rule.name not in LEFT_OUT)
    ]
    # Fits are there for their losses alone: they are too short for everything else.
    timed = _with_cells(profile, [result for result in profile.cells if result.cell.in_blocks])
    loaded = _with_cells(profile, [result for result in timed.cells if result.cell.workload != SMALL])
    run, run_timed, run_loaded = (MeasuredRun(label, part) for part in (profile, timed, loaded))
    checks: list[Check] = []
    for rule in rules:
        of_cells = run_loaded if rule.name in UNDER_LOAD else run_timed
        checks += _checks(rule, run if rule.scope == "run" else of_cells)
    return sorted(checks, key=lambda check: ("fail", "not_checked", "pass").index(check.status))


def _with_cells(profile: Profile, cells: list[CellResult]) -> Profile:
    keys = {result.key for result in cells}
    groups = [group for group in profile.groups if keys.issuperset(group.cells)]
    return msgspec.structs.replace(profile, cells=cells, groups=groups)


def _checks(rule: Rule, run: MeasuredRun) -> Iterator[Check]:
    result = audit([run], [rule])
    lacking, failed = result.not_checked, [finding for finding in result.findings if finding.severity != "note"]
    if result.rules[0].outcome == "not_applicable":
        yield Check(rule=rule.name, status="not_checked", reason=reason("nothing_to_check"))
        return
    for finding in failed:
        yield Check(rule=rule.name, status="fail", finding=finding)
    for lack in lacking:
        yield Check(rule=rule.name, status="not_checked", reason=lack.reason, cells=lack.cells, of_cells=lack.of_cells)
    shown = result.findings
    if not shown and rule.at_least is not None:
        shown = audit([run], [_without_limit(rule)]).findings
    if not failed and (shown or all(lack.cells < lack.of_cells for lack in lacking)):
        yield Check(rule=rule.name, status="pass", finding=next(iter(shown), None))


def _without_limit(rule: Rule) -> Rule:
    """Return the rule as one that finds every value, the largest first."""

    def check(subject: object) -> Iterator[Outcome]:
        answer = rule.check(subject)
        for part in [answer] if isinstance(answer, Found) else answer or ():
            if isinstance(part, Found):
                yield replace(part, rank=part.rank if part.value is None else part.value)

    return rule._replace(at_least=None, check=check)
