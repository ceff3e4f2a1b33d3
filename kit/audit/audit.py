"""The engine: all rules asked of some profiles.

rule × profile × subject ──► finding │ nothing found │ could not check (and what is missing)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from msgspec.structs import replace

from kit.audit.finding import SEVERITIES, SUMMARIES, Audit, AuditedProfile, Finding, NotChecked, RuleOutcome, Summary
from kit.audit.remedies import with_command
from kit.audit.rule import USUAL, Found, Rule, RuleDevices, Scope, all_rules
from kit.audit.subject import MeasuredCell, MeasuredRun, NotApplicableError, NotMeasuredError
from kit.compare.runs import Run
from kit.profile.cell import Cell
from kit.profile.fields import Reason
from kit.profile.program_source import ProgramSource
from kit.profile.schema import Profile

# Files of rules on what a machine does to a step; others are about how it was measured, and what.
MACHINE_RULES = ("gpus", "host")
# What the rules of a scope and a kind of device are called with, and the keys of group and cell of their findings.
Subjects = Mapping[tuple[Scope, RuleDevices], Sequence[tuple[Any, str, str]]]


def audit(runs: Sequence[MeasuredRun], rules: Sequence[Rule] | None = None) -> Audit:
    """Return what the rules, by default all, find in some profiles."""
    rules = all_rules() if rules is None else rules
    return audit_together([audit_run(run, rules) for run in runs], runs, rules)


def findings_of(run: Run) -> list[Finding]:
    """Return the findings on one run's groups and cells, group by group in its profile's order, the worst first."""
    order = {group.key: index for index, group in enumerate(run.profile.groups)}
    rules = [rule for rule in all_rules() if rule.scope in ("cell", "group")]
    findings = audit([MeasuredRun(run.label, run.profile, run)], rules).findings
    return sorted(findings, key=lambda finding: order[finding.group])


def machine_findings(label: str, profile: Profile) -> list[Finding]:
    """Return what the rules on host and GPUs find in a profile, warnings and worse: each once, by its worst."""
    rules = [rule for rule in all_rules() if rule.check.__module__.endswith(MACHINE_RULES)]
    findings: dict[str, Finding] = {}
    for finding in audit([MeasuredRun(label, profile)], rules).findings:
        if finding.severity != "note":
            findings.setdefault(finding.code, finding)
    return list(findings.values())


def audit_run(run: MeasuredRun, rules: Sequence[Rule]) -> Audit:
    """Return the audit of one profile; rules on several runs are not asked."""
    subjects: dict[tuple[Scope, RuleDevices], list[tuple[Any, str, str]]] = {}
    for on in get_args(RuleDevices):
        groups = [[cell for cell in group if _is_on(on, cell.cell.device)] for group in run.groups]
        subjects["cell", on] = [(cell, cell.group, cell.key) for group in groups for cell in group]
        subjects["group", on] = [(group, group[0].group, "") for group in groups if len(group) > 1]
        subjects["run", on] = [(run, "", "")] if _concerns(on, run) else []
    profile = AuditedProfile(label=run.label, id=run.profile.id, created=run.profile.created)
    return _asked(rules, subjects, [profile])


def audit_together(audits: Sequence[Audit], runs: Sequence[MeasuredRun], rules: Sequence[Rule]) -> Audit:
    """Return the audit of all profiles, with what the rules on several runs find.

    Args:
        audits: of each profile, and of each file that is none.
        runs: the profiles.
        rules: that were asked.
    """
    several: Subjects = {
        ("runs", on): [(runs, "", "")]
        for on in get_args(RuleDevices)
        if len(runs) > 1 and any(_concerns(on, run) for run in runs)
    }
    parts = [*audits, _asked(rules, several, [])]
    findings = [finding for part in parts for finding in part.findings]
    explained = {
        (finding.profile, finding.group, finding.cell_key, code) for finding in findings for code in finding.explains
    }
    kept = [
        finding
        for finding in findings
        if (finding.profile, finding.group, finding.cell_key, finding.code) not in explained
    ]
    outcomes = {rule.name: 0 for rule in rules}
    for outcome in (outcome for part in parts for outcome in part.rules):
        outcomes[outcome.rule] = max(outcomes[outcome.rule], SUMMARIES.index(outcome.outcome))
    return Audit(
        profiles=[profile for part in parts for profile in part.profiles],
        findings=sorted(kept, key=lambda finding: (-SEVERITIES.index(finding.severity), -finding.rank)),
        not_checked=[missing for part in parts for missing in part.not_checked],
        rules=[RuleOutcome(rule=name, outcome=SUMMARIES[index]) for name, index in outcomes.items()],
    )


def _is_on(on: RuleDevices, device: str) -> bool:
    return on == "any" or (on == "cpu") == (device == "cpu")


def _concerns(on: RuleDevices, run: MeasuredRun) -> bool:
    return on == "any" or any(_is_on(on, result.cell.device) for result in run.profile.cells)


def _asked(rules: Sequence[Rule], subjects: Subjects, profiles: list[AuditedProfile]) -> Audit:
    """Return what the rules find of their subjects, and what they lack; of each subject the first reason counts."""
    answer = Audit(profiles=profiles, findings=[], not_checked=[], rules=[])
    label = profiles[0].label if profiles else ""
    for rule in rules:
        findings: dict[object, Finding] = {}
        lacking: list[Reason] = []
        count = 0
        for content, group, cell_key in subjects.get((rule.scope, rule.on), ()):
            missing: list[Reason] = []
            try:
                outcome = rule.check(content)
                for part in [outcome] if outcome is None or isinstance(outcome, Found) else outcome:
                    if isinstance(part, NotMeasuredError):
                        missing.append(part.reason)
                    elif part is not None and (finding := _finding(rule, part, label, group, cell_key)) is not None:
                        if finding.remedy is not None:
                            cells, programs = _measured_again(content, finding)
                            finding = replace(finding, remedy=with_command(finding.remedy, cells, programs))
                        # A GPU may be found before and after a run: it counts once.
                        findings[finding.profile, group, finding.cell_key, finding.about] = finding
            except NotMeasuredError as error:
                missing.append(error.reason)
            except NotApplicableError:
                continue
            count += 1
            lacking += missing[:1]
        if lacking:
            names = {"rule": rule.name, "profile": label}
            lack = NotChecked(**names, severity=rule.severity, reason=lacking[0], cells=len(lacking), of_cells=count)
            answer.not_checked.append(lack)
        answer.findings.extend(findings.values())
        summary: Summary = "nothing_found" if count else "not_applicable"
        summary = "finding" if findings else "not_checked" if lacking else summary
        answer.rules.append(RuleOutcome(rule=rule.name, outcome=summary))
    return answer


def _measured_again(subject: Any, finding: Finding) -> tuple[list[Cell], Mapping[str, ProgramSource]]:  # noqa: ANN401 - of any rule
    """Return the cells that a finding is about, and the user programs among them, for the command of its remedy."""
    if isinstance(subject, MeasuredRun | MeasuredCell):
        runs = [subject if isinstance(subject, MeasuredRun) else subject.run]
    else:
        runs = [part if isinstance(part, MeasuredRun) else part.run for part in subject]
    profile = next((run for run in runs if run.label == finding.profile), runs[0]).profile
    keys = {finding.cell_key}
    if not finding.cell_key:
        named = [subject] if isinstance(subject, MeasuredCell) else subject if isinstance(subject, Sequence) else []
        keys = {cell.key for cell in named if isinstance(cell, MeasuredCell)}
    cells = [result.cell for result in profile.cells if not keys or result.key in keys]
    return cells or [result.cell for result in profile.cells], profile.suite.programs


def _finding(rule: Rule, evidence: Found, label: str, group: str, cell_key: str) -> Finding | None:
    """Return what a rule found of a subject as a finding; None where it is within the limit."""
    value = evidence.rank if evidence.value is None else evidence.value
    if rule.at_least is not None and value < rule.at_least:
        return None
    code, usual = evidence.code or rule.name, None if rule.remedy is None else Reason(code=rule.remedy)
    return Finding(
        code=code,
        severity=evidence.severity or rule.severity,
        values=dict(evidence.values),
        rank=evidence.rank,
        because=evidence.because,
        remedy=usual if evidence.remedy is USUAL else evidence.remedy,
        explains=rule.explains[code] if evidence.explains is None else evidence.explains,
        profile=evidence.profile or label,
        group=group,
        cell_key=evidence.cell_key or cell_key,
        rule=rule.name,
    )
