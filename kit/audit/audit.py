"""All rules asked of some profiles.

rule × profile × cell ──► finding │ nothing found │ could not check (and what is missing)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kit.audit.finding import SEVERITIES, Audit, AuditedProfile, Finding, NotChecked, RuleOutcome, Summary
from kit.audit.rule import Audited, Outcome, Rule, all_rules
from kit.profile.reason import Reason
from kit.profile.schema import Profile


def audit(
    audited: Sequence[Audited], rules: Sequence[Rule] | None = None, unread: Sequence[AuditedProfile] = ()
) -> Audit:
    """Return what the rules, by default all, say of some profiles; `unread`: files that are none, to be named."""
    findings: list[Finding] = []
    not_checked: list[NotChecked] = []
    outcomes: list[RuleOutcome] = []
    for asked in all_rules() if rules is None else rules:
        of_rule, missing, subjects = _ask(asked, audited)
        findings += of_rule
        not_checked += missing
        outcomes.append(RuleOutcome(rule=asked.name, outcome=_summed_up(of_rule, missing, subjects)))
    read = [AuditedProfile(label=of.label, id=of.profile.id, created=of.profile.created) for of in audited]
    return Audit(
        profiles=[*read, *unread], findings=_sorted(_unexplained(findings)), not_checked=not_checked, rules=outcomes
    )


def findings_of(profile: Profile) -> list[Finding]:
    """Return the findings of one profile's groups and cells, group by group in its order, gravest first."""
    order = {group.key: place for place, group in enumerate(profile.groups)}
    rules = [asked for asked in all_rules() if asked.scope in ("member", "group")]
    findings = audit([Audited("", profile)], rules).findings
    return sorted(findings, key=lambda finding: order[finding.group])


def _ask(asked: Rule, audited: Sequence[Audited]) -> tuple[list[Finding], list[NotChecked], int]:
    """Return what a rule found, what it could not check, and of how many cells, groups or profiles it was asked."""
    findings: list[Finding] = []
    not_checked: list[NotChecked] = []
    subjects = 0
    for label, outcomes in _outcomes(asked, audited):
        subjects += len(outcomes)
        missing: list[Reason] = []
        for outcome in outcomes:
            if isinstance(outcome, Reason):
                missing.append(outcome)
            elif outcome is not None:
                of_outcome = outcome if isinstance(outcome, list) else [outcome]
                findings += [replace(of, rule=asked.name, profile=of.profile or label) for of in of_outcome]
        if missing:
            not_checked.append(
                NotChecked(
                    rule=asked.name,
                    severity=asked.worst,
                    profile=label,
                    reason=missing[0],
                    cells=len(missing),
                    of_cells=len(outcomes),
                )
            )
    return findings, not_checked, subjects


def _outcomes(asked: Rule, audited: Sequence[Audited]) -> Iterator[tuple[str, list[Outcome]]]:
    """Yield the rule's outcomes for each profile; of several together only where there are several."""
    if asked.scope == "fleet":
        if len(audited) > 1:
            yield "", [asked.check(audited)]
        return
    for of in audited:
        if asked.scope == "profile":
            yield of.label, [asked.check(of)]
            continue
        groups = [[member for member in group if asked.applies(member.cell.device)] for group in of.groups]
        if asked.scope == "member":
            yield of.label, [asked.check(member) for group in groups for member in group]
        else:
            yield of.label, [asked.check(group) for group in groups if len(group) > 1]


def _summed_up(findings: Sequence[Finding], not_checked: Sequence[NotChecked], subjects: int) -> Summary:
    if findings:
        return "finding"
    return "not_checked" if not_checked else "nothing_found" if subjects else "not_applicable"


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
