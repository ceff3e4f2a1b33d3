"""The engine: all rules asked of some profiles.

rule × profile × subject ──► finding │ nothing found │ could not check (and what is missing)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kit.audit.finding import SEVERITIES, Audit, AuditedProfile, Finding, NotChecked, RuleOutcome, Summary
from kit.audit.rule import Found, Rule, all_rules
from kit.audit.subject import MeasuredRun, NotApplicableError, NotMeasuredError
from kit.compare.sample import Run
from kit.profile.reason import Reason
from kit.profile.schema import Profile

# Files of rules on what a machine does to a step; others are about how it was measured, and what.
MACHINE_RULES = ("gpus", "host")


class Asked(NamedTuple):
    """What came of asking some rules of one profile, or of several together."""

    findings: list[Finding]
    not_checked: list[NotChecked]
    checked: set[str]  # names of the rules that had something to check


class Subject(NamedTuple):
    """What a rule is called with, and the keys of its findings."""

    content: Any
    group: str = ""
    cell_key: str = ""


def audit(runs: Sequence[MeasuredRun], rules: Sequence[Rule] | None = None) -> Audit:
    """Return what the rules, by default all, find in some profiles."""
    rules = all_rules() if rules is None else rules
    return summed_up(rules, runs, [ask(run, rules) for run in runs])


def findings_of(run: Run) -> list[Finding]:
    """Return the findings on one run's groups and cells, group by group in its profile's order, the worst first."""
    order = {group.key: index for index, group in enumerate(run.profile.groups)}
    rules = [rule for rule in all_rules() if rule.scope in ("cell", "group")]
    return sorted(audit([MeasuredRun(run)], rules).findings, key=lambda finding: order[finding.group])


def machine_findings(label: str, profile: Profile) -> list[Finding]:
    """Return what the rules on host and GPUs find in a profile, warnings and worse: each once, by its worst."""
    rules = [rule for rule in all_rules() if rule.scope != "runs" and rule.check.__module__.endswith(MACHINE_RULES)]
    findings: dict[str, Finding] = {}
    for finding in audit([MeasuredRun.read(label, profile)], rules).findings:
        if finding.severity != "note":
            findings.setdefault(finding.code, finding)
    return list(findings.values())


def ask(run: MeasuredRun, rules: Sequence[Rule]) -> Asked:
    """Ask the rules that are about one profile."""
    asked = Asked([], [], set())
    for rule in rules:
        if rule.scope != "runs":
            _ask(asked, rule, run.label, _subjects(rule, run))
    return asked


def _subjects(rule: Rule, run: MeasuredRun) -> Iterator[Subject]:
    if rule.scope == "run" and _concerns(rule, run):
        yield Subject(run)
    for group in run.groups if rule.scope in ("cell", "group") else ():
        cells = [cell for cell in group if rule.applies(cell.cell.device)]
        if rule.scope == "cell":
            yield from (Subject(cell, cell.group, cell.key) for cell in cells)
        elif len(cells) > 1:
            yield Subject(cells, cells[0].group)


def _concerns(rule: Rule, run: MeasuredRun) -> bool:
    return rule.on == "any" or any(rule.applies(result.cell.device) for result in run.profile.cells)


def _ask(asked: Asked, rule: Rule, label: str, subjects: Iterator[Subject] | Sequence[Subject]) -> None:
    """Add what a rule finds of its subjects, and what it lacks; of each subject the first reason counts."""
    lacking: list[Reason] = []
    count = 0
    for content, group, cell_key in subjects:
        findings: dict[object, Finding] = {}
        missing: list[Reason] = []
        try:
            outcome = rule.check(content)
            for part in outcome if isinstance(outcome, Iterator) else (outcome,):
                if isinstance(part, NotMeasuredError):
                    missing.append(part.reason)
                elif isinstance(part, Found):
                    finding = rule.finding(part, profile=label, group=group, cell_key=cell_key)
                    if finding is not None:  # of one GPU before and after a run, once
                        findings[finding.profile, finding.cell_key, finding.about] = finding
        except NotMeasuredError as error:
            missing.append(error.reason)
        except NotApplicableError:
            continue
        count += 1
        asked.findings.extend(findings.values())
        lacking += missing[:1]
    if count:
        asked.checked.add(rule.name)
    if lacking:
        names = {"rule": rule.name, "profile": label}
        lack = NotChecked(**names, severity=rule.severity, reason=lacking[0], cells=len(lacking), of_cells=count)
        asked.not_checked.append(lack)


def summed_up(
    rules: Sequence[Rule], runs: Sequence[MeasuredRun], answers: Sequence[Asked], unread: Sequence[AuditedProfile] = ()
) -> Audit:
    """Return the audit of all profiles: what was asked of each, and what the rules on several runs find.

    `unread`: files that are no profiles, to be named.
    """
    together = Asked([], [], set())
    for rule in rules:
        if rule.scope == "runs" and len(runs) > 1 and any(_concerns(rule, run) for run in runs):
            _ask(together, rule, "", [Subject(runs)])
    parts = [*answers, together]
    findings = [finding for part in parts for finding in part.findings]
    not_checked = [missing for part in parts for missing in part.not_checked]
    explained = {
        (finding.profile, finding.group, finding.cell_key, code) for finding in findings for code in finding.explains
    }
    kept = [
        finding
        for finding in findings
        if (finding.profile, finding.group, finding.cell_key, finding.code) not in explained
    ]
    outcomes: dict[str, Summary] = {rule.name: "not_applicable" for rule in rules}
    outcomes |= {name: "nothing_found" for part in parts for name in part.checked}
    outcomes |= {missing.rule: "not_checked" for missing in not_checked}
    outcomes |= {finding.rule: "finding" for finding in findings}
    read = [AuditedProfile(label=run.label, id=run.profile.id, created=run.profile.created) for run in runs]
    return Audit(
        profiles=[*read, *unread],
        findings=sorted(kept, key=lambda finding: (-SEVERITIES.index(finding.severity), -finding.rank)),
        not_checked=not_checked,
        rules=[RuleOutcome(rule=rule.name, outcome=outcomes[rule.name]) for rule in rules],
    )
