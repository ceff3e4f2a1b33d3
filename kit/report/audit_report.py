"""An audit as a report: findings, the most severe first, with evidence and remedy; then what could not be checked.

quick · 12 cells · 53 rules · 1 warning (2 cells)
  warning  contention     mlp (torch, train, batch 128): other programs took up to 23 % … 2 of 12 cells are affected, …
                          Stop other programs, …
22 rules found nothing.
Could not check 14 of 53 rules: …
leave out what cannot be checked: kit audit quick.json --without parity,…

`kit selftest --device` audits the first hour on a device: a row for each check, with its evidence.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from kit.audit.finding import SEVERITIES, Audit, Finding, NotChecked, Severity, at_least
from kit.audit.remedies import REMEDIES
from kit.audit.rule import sentences
from kit.audit.subject import MeasuredRun
from kit.compare.naming import cell_names, titles
from kit.documentation import page
from kit.profile.schema import Profile
from kit.report.machine_report import machine_lines
from kit.report.reasons_in_words import filled, sentence
from kit.report.report_table import HOST_SHOWN, Case, Column, Later, Report, Table, TableCell
from kit.report.values_in_words import counted, one_line, several

if TYPE_CHECKING:
    from kit.audit.first_hour import Check, Status

STYLES: Mapping[Severity, str] = {"bad": "red", "warning": "yellow", "note": ""}
NOUNS: Mapping[Severity, str] = {"bad": "bad finding", "warning": "warning", "note": "note"}
RULES = page("reference/audit/index.md")
# More than these are a list nobody reads: JSON has all.
REASONS_MAX, NAMES_MAX = 3, 3
# Label of a profile -> the name of each cell and group in it by its key.
SubjectNames = Callable[[str], Mapping[str, str]]
# Where a reason's explanation and remedy begin.
CUT = re.compile(r" \(|; ")
# Words, color, and outcome of a test case.
STATUSES: dict[Status, tuple[str, str, Literal["passed", "failed", "skipped"]]] = {
    "fail": ("FAIL", "red", "failed"),
    "not_checked": ("could not check", "yellow", "skipped"),
    "pass": ("pass", "green", "passed"),
}


def evidence(finding: Finding, who: str) -> str:
    """Return a finding's evidence in words; `who` is the cell's or the group's name."""
    because = {} if finding.because is None else {"because": sentence(finding.because)}
    return filled(sentences(), finding.code, {"who": who, **because, **finding.values})


def remedy(finding: Finding, file: str = "") -> str | None:
    """Return what to try against a finding, without a full stop; `file` is that of its profile, as a shell takes it."""
    what = finding.remedy
    if what is None:
        return None
    named = {"file": file or shlex.quote(f"{finding.profile}.json")} if what.code in REMEDIES else {}
    return filled(REMEDIES, what.code, named | what.values)


def audit_report(
    audit: Audit,
    runs: Sequence[MeasuredRun],
    fail_on: Severity,
    command: str,
    files: Mapping[str, str] = MappingProxyType({}),
) -> Report:
    """Return the report.

    Args:
        audit: of all runs.
        runs: that were audited.
        fail_on: findings as severe as this are its failures.
        command: that was run.
        files: the file of each run by its label, as a shell takes it.
    """
    by_label = {run.label: run for run in runs}

    @cache
    def names(label: str) -> Mapping[str, str]:
        """Return the name of each cell and each group of a profile by its key."""
        profile = by_label[label].profile
        by_key = {result.key: result.cell for result in profile.cells}
        groups = [group for group in profile.groups if all(key in by_key for key in group.cells)]
        heads = titles([[by_key[key] for key in group.cells] for group in groups]) if groups else []
        of_groups = {group.key: " · ".join(title) for group, title in zip(groups, heads, strict=True)}
        return of_groups | cell_names(list(by_key.values()))

    lines: defaultdict[object, list[Finding]] = defaultdict(list)  # that say the same of several; the worst is first
    for finding in audit.findings:
        cause = finding.because and finding.because.code
        lines[finding.profile, finding.code, finding.severity, finding.values.get("variable"), cause].append(finding)
    rows: defaultdict[str, list[list[TableCell]]] = defaultdict(list)  # by label
    for alike in lines.values():
        label = alike[0].profile
        rows[label] += _rows(alike, names, len(by_label[label].profile.cells), files.get(label, ""))
    columns = [Column("", right=False), Column("", right=False), Column("", right=False, folds=True)]
    who = runs[0].label if len(runs) == 1 else counted(len(runs), "profile")
    cells = counted(sum(len(run.profile.cells) for run in runs), "cell")
    parts = [who, cells, counted(len(audit.rules), "rule"), _counts(lines.values())]
    return Report(
        name="kit audit",
        headline=[one_line(" · ".join(parts))],
        tables=[Table(one_line(label), columns, profile_rows) for label, profile_rows in rows.items()],
        notes=[f"not audited: {profile.error}" for profile in audit.profiles if profile.error] + _closing(audit),
        hint=_hint(audit, fail_on, command),
        records=Later(lambda: list(_records(audit, names))),
        cases=Later(lambda: list(_cases(audit, names, fail_on))),
        labels=Later(lambda: [*_labels(audit, names, by_label)]),
        properties={"fail-on": fail_on},
        document=audit,
    )


def _name(finding: Finding, names: SubjectNames) -> str:
    """Return the name of the GPU, cell or group that has it; empty: the profile as a whole has it."""
    known = names(finding.profile)
    name = finding.values.get("board") or known.get(finding.cell_key) or known.get(finding.group)
    return one_line(str(name or finding.group))


def _hyphened(rule: str) -> str:
    return rule.replace("_", "-")


def _noun(finding: Finding) -> str:
    return "cell" if finding.cell_key else "group" if finding.group else "GPU" if finding.about else "run"


def _counts(lines: Collection[Sequence[Finding]]) -> str:
    """Return ``1 bad finding, 2 notes (3 cells, 1 run)``: how many lines, and whom those of several are about."""
    parts = []
    for severity, noun in NOUNS.items():
        alike = [line for line in lines if line[0].severity == severity]
        findings = [finding for line in alike for finding in line]
        about = {(finding.profile, finding.cell_key or finding.group or finding.about): finding for finding in findings}
        nouns = Counter(map(_noun, about.values()))
        whom = f" ({', '.join(counted(count, noun) for noun, count in nouns.items())})"
        if alike:
            parts.append(f"{counted(len(alike), noun)}{whom if len(findings) > len(alike) else ''}")
    return ", ".join(parts) or "no finding"


def _rows(alike: Sequence[Finding], names: SubjectNames, cells: int, file: str) -> list[list[TableCell]]:
    """Return the line of some findings that say the same, the worst first, and what to try."""
    worst = alike[0]
    words, tried = evidence(worst, _name(worst, names)), remedy(worst, file)
    subjects: dict[tuple[str, str], Finding] = {}  # the first finding about each cell or group, and GPU
    for finding in alike:
        subjects.setdefault((finding.cell_key or finding.group, finding.about), finding)
    if len(subjects) > 1:
        noun = _noun(worst)
        count = f"{len(subjects)} of {counted(cells, noun)}" if noun == "cell" else counted(len(subjects), noun)
        listed = several([_name(finding, names) for finding in subjects.values()])
        words += f" {count} are affected, worst first: {listed}."
    rows = [[TableCell(worst.severity, STYLES[worst.severity]), TableCell(_hyphened(worst.rule)), TableCell(words)]]
    return rows if tried is None else [*rows, [TableCell(""), TableCell(""), TableCell(f"{tried}.", "dim")]]


def _closing(audit: Audit) -> list[str]:
    """Return how many rules found nothing, and what could not be checked, by what is missing, the worst first."""
    outcomes = Counter(rule.outcome for rule in audit.rules)
    apart = f"; {outcomes['not_applicable']} did not apply" if outcomes["not_applicable"] else ""
    # A finding that says less than another one about the same is left out.
    hidden = outcomes["finding"] - len({finding.rule for finding in audit.findings})
    apart += f"; {hidden} found only what another rule explains" if hidden else ""
    lines = [f"{counted(outcomes['nothing_found'], 'rule')} found nothing{apart}."]
    by_reason: dict[str, dict[str, list[NotChecked]]] = defaultdict(lambda: defaultdict(list))
    for missing in audit.not_checked:
        is_absent = missing.reason.code == "not_recorded"
        why = "not in the profile" if is_absent else CUT.split(sentence(missing.reason))[0]
        by_reason[why][missing.rule].append(missing)
    reasons = sorted(
        by_reason.items(),
        key=lambda reason: (-max(SEVERITIES.index(lack[0].severity) for lack in reason[1].values()), -len(reason[1])),
    )
    parts = []
    for why, rules in reasons[:REASONS_MAX]:
        listed = []
        for rule, lacks in rules.items():
            count, cells = sum(lack.cells for lack in lacks), sum(lack.of_cells for lack in lacks)
            listed.append(f"{_hyphened(rule)}{'' if count == cells else f' in {count} of {cells} cells'}")
        more = f" and {len(listed) - NAMES_MAX} more" if len(listed) > NAMES_MAX + 1 else ""
        parts.append(f"{', '.join(listed[:NAMES_MAX] if more else listed)}{more} ({why})")
    if rest := {rule for _, rules in reasons[REASONS_MAX:] for rule in rules}:
        parts.append(f"{counted(len(rest), 'more rule')} (see --json)")
    if parts:
        lacking = {missing.rule for missing in audit.not_checked}
        lines.append(f"Could not check {len(lacking)} of {counted(len(audit.rules), 'rule')}: {'; '.join(parts)}.")
    return [*lines, f"{RULES} explains each rule."] if audit.findings else lines


def _hint(audit: Audit, fail_on: Severity, command: str) -> str:
    """Return the command that leaves out each rule for which the audit exits with 5; none where it leaves no rule."""
    severities = at_least(fail_on)
    failing = {finding.rule for finding in audit.findings if finding.severity in severities}
    lacking = [missing.rule for missing in audit.not_checked if missing.severity in severities]
    left_out = dict.fromkeys(_hyphened(rule) for rule in lacking if rule not in failing)
    if not left_out or len(left_out) == len(audit.rules):
        return ""
    return f"leave out what cannot be checked: {command} --without {','.join(left_out)}"


def _records(audit: Audit, names: SubjectNames) -> Iterator[dict[str, object]]:
    """Yield a record a finding, one a rule that could not check or found nothing, and one a file that is none."""
    for finding in audit.findings:
        about = {"profile": finding.profile, "rule": _hyphened(finding.rule), "severity": finding.severity}
        yield {"outcome": "finding", **about, "subject": _name(finding, names), "rank": finding.rank, "cells": 1}
    for lack in audit.not_checked:
        about = {"profile": lack.profile, "rule": _hyphened(lack.rule), "could_be": lack.severity}
        yield {"outcome": "not_checked", **about, "subject": sentence(lack.reason), "cells": lack.cells}
    for rule in audit.rules:
        if rule.outcome in ("nothing_found", "not_applicable"):
            yield {"outcome": rule.outcome, "rule": _hyphened(rule.rule), "cells": 0}
    for profile in audit.profiles:
        if profile.error:
            yield {"outcome": "unreadable", "profile": profile.label, "subject": profile.error, "cells": 0}


def _labels(audit: Audit, names: SubjectNames, by_label: Mapping[str, MeasuredRun]) -> Iterator[dict[str, str]]:
    """Yield the words of each record, with the machine of its profile."""
    for record in _records(audit, names):
        run = by_label.get(str(record.get("profile", "")))
        identity = None if run is None else run.profile.identity
        host = {} if identity is None else {"host": (identity.host or identity.hardware_sha256)[:HOST_SHOWN]}
        yield {name: value for name, value in record.items() if isinstance(value, str) and value} | host


def _cases(audit: Audit, names: SubjectNames, fail_on: Severity) -> Iterator[Case]:
    """Yield a case a rule: failed by its worst finding, skipped where it could not check; and one a file."""
    for rule in audit.rules:
        findings = [finding for finding in audit.findings if finding.rule == rule.rule]
        words = " ".join(evidence(finding, _name(finding, names)) for finding in findings)
        missing = [lack for lack in audit.not_checked if lack.rule == rule.rule]
        case = Case(_hyphened(rule.rule), "kit audit", output=words)
        if any(finding.severity in at_least(fail_on) for finding in findings):
            case = case._replace(outcome="failed", words=words, kind=findings[0].severity, output="")
        elif missing:
            case = case._replace(outcome="skipped", words=f"could not check: {sentence(missing[0].reason)}")
        if rule.outcome != "not_applicable":
            yield case
    for profile in audit.profiles:
        if profile.error:
            yield Case(profile.label, "kit audit", "error", profile.error, "not readable")


def first_hour_report(profile: Profile, checks: Sequence[Check]) -> Report:
    """Return what `kit selftest --device` prints of a profile and its checks."""
    fits, timed = (
        [each.cell for each in profile.cells if each.cell.in_blocks == in_blocks] for in_blocks in (False, True)
    )
    names = cell_names(fits) | cell_names(timed)
    rows, records, cases = [], [], []
    for check in checks:
        words, style, outcome = STATUSES[check.status]
        rule, finding, detail = _hyphened(check.rule), check.finding, ""
        if finding is not None:
            detail = evidence(finding, one_line(names.get(finding.cell_key, "")))
            tried = remedy(finding) if check.status == "fail" else None
            detail += f" {tried}." if tried is not None else ""
        elif check.reason is not None:
            some = f"{check.cells} of {counted(check.of_cells, 'cell')}: " if check.cells < check.of_cells else ""
            sensor = check.reason.values.get("sensor")
            detail = f"{some}{f'{sensor}: ' if sensor else ''}{sentence(check.reason)}"
        rows.append([TableCell(rule), TableCell(words, style), TableCell(detail)])
        cases.append(Case(rule, "first hour", outcome, detail, "" if outcome == "passed" else check.rule, detail))
        records.append({"check": rule, "status": check.status, "detail": detail})
    lines = machine_lines(profile.identity)
    devices = {result.cell.device for result in profile.cells} - {"cpu"}
    shown = [f"{name}: {value}" for name, value in lines.items() if name.startswith(tuple(devices))]
    counts = {status: sum(check.status == status for check in checks) for status in STATUSES}
    result = f"{counts['pass']} passed, {counts['fail']} failed, {counts['not_checked']} could not be checked"
    interrupted = ["The run was interrupted, so cells are missing."] if profile.interrupted else []
    columns = [Column(name, right=False, folds=name == "detail") for name in ("check", "status", "detail")]
    return Report(
        name="kit selftest",
        headline=[one_line(line) for line in (*shown, f"{lines['CPU']} · kit {profile.kit.version}")],
        tables=[Table("", columns, rows)],
        notes=[*interrupted, f"{counted(len(checks), 'check')}: {result}", f"{RULES} explains each check."],
        records=records,
        cases=cases,
        document=list(checks),
    )
