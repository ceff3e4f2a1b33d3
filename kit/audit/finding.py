"""What an audit says: findings with evidence and remedy, what could not be checked, and which rules found nothing.

Codes and numbers only; `kit.report` puts them into words. What could not be checked is an outcome of its own: no pass.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from kit.profile.fields import Reason, Value

AUDIT_SCHEMA = "steadykit.audit/1.0"

Severity = Literal["note", "warning", "bad"]
Summary = Literal["not_applicable", "nothing_found", "not_checked", "finding"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
SUMMARIES: tuple[Summary, ...] = get_args(Summary)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule says of a cell in a group, of a whole group, of a profile, or of several."""

    code: str  # of its sentence, and with hyphens of its section in docs/reference/audit
    severity: Severity
    values: dict[str, Value] = {}  # the evidence, units in their names
    rank: float = 0.0  # percent of the time that it concerns; orders findings of one severity
    because: Reason | None = None  # what the profile has as the cause; null: the evidence is all
    remedy: Reason | None = None  # what to try; null: nothing that is known to help
    explains: tuple[str, ...] = ()  # codes that say less about the same and are left out beside this one
    profile: str = ""  # label; of several, which one stands out
    group: str = ""  # key; empty: the profile's as a whole
    cell_key: str = ""  # empty: the group's as a whole
    rule: str = ""  # that found it

    @property
    def about(self) -> str:
        """The GPU, its sensor or the variable that it is about; empty: it is about its cell or group."""
        return str(self.values.get("board", self.values.get("variable", "")))


class NotChecked(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that lacked what it needs, in one profile."""

    rule: str
    severity: Severity  # the worst that it may find
    profile: str
    reason: Reason  # what is missing
    cells: int  # for which
    of_cells: int


class RuleOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one rule over all profiles."""

    rule: str
    outcome: Summary


class AuditedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was to be audited."""

    label: str
    id: str = ""
    created: str = ""
    error: str = ""  # why it could not be read; its rules did not run


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What all rules say of some profiles; the worst findings first."""

    schema: str = AUDIT_SCHEMA
    profiles: list[AuditedProfile]
    findings: list[Finding]
    not_checked: list[NotChecked]
    rules: list[RuleOutcome]


def at_least(severity: Severity) -> tuple[Severity, ...]:
    """Return this severity and all that are worse."""
    return SEVERITIES[SEVERITIES.index(severity) :]


def exit_code(audit: Audit, fail_on: Severity) -> int:
    """Return 1 for a finding as severe as `fail_on`, 5 where one might have been missed, 0 for neither."""
    counted = at_least(fail_on)
    if any(finding.severity in counted for finding in audit.findings):
        return 1
    return 5 if any(missing.severity in counted for missing in audit.not_checked) else 0
