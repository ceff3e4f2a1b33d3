"""All rules asked of some profiles.

rule × profile × cell ──► finding │ nothing found │ could not check (and what is missing)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kit.audit.finding import SEVERITIES, Audit, AuditedProfile, Finding, NotChecked, RuleOutcome, Summary
from kit.audit.rule import NOT_APPLICABLE, Audited, Outcome, Rule, all_rules
from kit.profile.reason import Reason
from kit.profile.schema import Profile


class Asked(NamedTuple):
    """What came of asking some rules of one profile, or of a fleet."""

    findings: list[Finding]
    not_checked: list[NotChecked]
    subjects: dict[str, int]  # of how many cells, groups or profiles each rule was asked


def audit(audited: Sequence[Audited], rules: Sequence[Rule] | None = None) -> Audit:
    """Return what the rules, by default all, say of some profiles."""
    asked = all_rules() if rules is None else rules
    return summed_up(asked, audited, [ask(of, asked) for of in audited])


def findings_of(profile: Profile, *, all_cycles: bool = False) -> list[Finding]:
    """Return the findings of one profile's groups and cells, group by group in its order, gravest first."""
    order = {group.key: place for place, group in enumerate(profile.groups)}
    rules = [asked for asked in all_rules() if asked.scope in ("member", "group")]
    findings = audit([Audited("", profile, all_cycles)], rules).findings
    return sorted(findings, key=lambda finding: order[finding.group])


def ask(audited: Audited, rules: Sequence[Rule]) -> Asked:
    """Ask those of the rules that are of one profile."""
    answers = Asked([], [], {})
    for asked in rules:
        if asked.scope == "profile":
            if not _concerns(asked, [audited]):
                continue
            _take(answers, asked, audited.label, [asked.check(audited)])
        elif asked.scope != "fleet":
            groups = [[member for member in group if asked.applies(member.cell.device)] for group in audited.groups]
            if asked.scope == "member":
                outcomes = [asked.check(member) for group in groups for member in group]
            else:
                outcomes = [asked.check(group) for group in groups if len(group) > 1]
            _take(answers, asked, audited.label, outcomes)
    return answers


def summed_up(
    rules: Sequence[Rule], audited: Sequence[Audited], answers: Sequence[Asked], unread: Sequence[AuditedProfile] = ()
) -> Audit:
    """Return the audit of all profiles: what was asked of each, and what the rules on fleets say of several.

    `unread`: files that are no profiles, to be named.
    """
    of_fleet = Asked([], [], {})
    for asked in rules:
        if asked.scope == "fleet" and len(audited) > 1 and _concerns(asked, audited):
            _take(of_fleet, asked, "", [asked.check(audited)])
    parts = [*answers, of_fleet]
    findings = [finding for part in parts for finding in part.findings]
    not_checked = [missing for part in parts for missing in part.not_checked]
    read = [AuditedProfile(label=of.label, id=of.profile.id, created=of.profile.created) for of in audited]
    return Audit(
        profiles=[*read, *unread],
        findings=_sorted(_unexplained(findings)),
        not_checked=not_checked,
        rules=[RuleOutcome(rule=asked.name, outcome=_outcome(asked.name, parts)) for asked in rules],
    )


def _concerns(asked: Rule, audited: Sequence[Audited]) -> bool:
    """Whether a rule is of any kind of device, or some cell is on one that it is of."""
    return asked.on == "any" or any(asked.applies(result.cell.device) for of in audited for result in of.results)


def _outcome(rule: str, parts: Sequence[Asked]) -> Summary:
    if any(finding.rule == rule for part in parts for finding in part.findings):
        return "finding"
    if any(missing.rule == rule for part in parts for missing in part.not_checked):
        return "not_checked"
    return "nothing_found" if any(part.subjects.get(rule) for part in parts) else "not_applicable"


def _take(answers: Asked, asked: Rule, label: str, outcomes: Sequence[Outcome]) -> None:
    """Add what a rule said of one profile, or of a fleet."""
    outcomes = [outcome for outcome in outcomes if outcome is not NOT_APPLICABLE]
    answers.subjects[asked.name] = len(outcomes)
    missing: list[Reason] = []
    for outcome in outcomes:
        parts = [] if outcome is None else [outcome] if isinstance(outcome, Finding | Reason) else outcome
        answers.findings.extend(
            replace(part, rule=asked.name, profile=part.profile or label) for part in parts if isinstance(part, Finding)
        )
        missing += [part for part in parts if isinstance(part, Reason)][:1]
    if missing:
        answers.not_checked.append(
            NotChecked(
                rule=asked.name,
                severity=asked.worst,
                profile=label,
                reason=missing[0],
                cells=len(missing),
                of_cells=len(outcomes),
            )
        )


def _unexplained(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without those of which another says more."""
    explained = {
        (finding.profile, finding.group, finding.cell_key, code) for finding in findings for code in finding.explains
    }
    return [
        finding
        for finding in findings
        if (finding.profile, finding.group, finding.cell_key, finding.code) not in explained
    ]


def _sorted(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (-SEVERITIES.index(finding.severity), -finding.rank))
