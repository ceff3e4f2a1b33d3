"""An audit as a report: findings, the most severe first, with evidence and remedy; then what could not be checked.

quick · 12 cells · 53 rules · 1 warning
  warning  contention     mlp (torch, train, batch 128): other programs took up to 23 % … 2 of 12 cells are affected, …
                          Stop other programs, …
22 rules found nothing.
Could not check 14 of 53 rules: …
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from kit.audit.finding import SEVERITIES, Audit, Finding, NotChecked, Severity, at_least
from kit.audit.rule import Audited
from kit.compare.naming import cell_names, titles
from kit.report.plain import one_line
from kit.report.quantity import counted, several
from kit.report.sentences import FINDINGS, REMEDIES, filled, sentence
from kit.report.table import Case, Cell, Column, Report, Table

STYLES: Mapping[Severity, str] = {"bad": "red", "warning": "yellow", "note": ""}
RULES = "docs/reference/audit"
# More than these are a list nobody reads: JSON has all.
REASONS_MAX, NAMES_MAX = 3, 3
Names = Mapping[tuple[str, str], str]  # label of a profile, and key of a cell or group in it -> its name
# Where a reason's explanation and remedy begin.
CUT = re.compile(r" \(|; ")
OF_PROFILE = "not in the profile"


class _Alike(NamedTuple):
    """Findings of one rule that say the same of several cells, groups or GPUs of one profile; the worst is shown."""

    worst: Finding
    members: dict[tuple[str, str], Finding]  # by key of the cell or group, and what it is about


def audit_report(audit: Audit, audited: Sequence[Audited], fail_on: Severity) -> Report:
    """Return the report; findings as grave as `fail_on` are its failures."""
    names = {(of.label, key): name for of in audited for key, name in _names(of).items()}
    alike = _alike(audit.findings)
    labels = dict.fromkeys(of.worst.profile for of in alike)
    cells = {of.label: len(of.profile.cells) for of in audited}
    return Report(
        name="kit audit",
        headline=[_headline(audit, audited)],
        tables=[
            _table(label, [of for of in alike if of.worst.profile == label], names, cells.get(label, 0))
            for label in labels
        ],
        notes=[*_unread(audit), *_closing(audit)],
        records=_records(audit, names),
        cases=_cases(audit, names, fail_on),
        properties={"fail-on": fail_on},
        document=audit,
    )


def _headline(audit: Audit, audited: Sequence[Audited]) -> str:
    cells = sum(len(of.profile.cells) for of in audited)
    counts = Counter(finding.severity for finding in audit.findings)
    nouns = {"bad": "bad finding", "warning": "warning", "note": "note"}
    listed = ", ".join(counted(counts[severity], nouns[severity]) for severity in STYLES if counts[severity])
    who = audited[0].label if len(audited) == 1 else counted(len(audited), "profile")
    return one_line(
        f"{who} · {counted(cells, 'cell')} · {counted(len(audit.rules), 'rule')} · {listed or 'no finding'}"
    )


def _names(audited: Audited) -> dict[str, str]:
    """Return the name of each cell and each group of a profile by its key."""
    profile = audited.profile
    by_key = {result.key: result.cell for result in profile.cells}
    groups = [group for group in profile.groups if all(key in by_key for key in group.cells)]
    heads = titles([[by_key[key] for key in group.cells] for group in groups]) if groups else []
    of_groups = {group.key: " · ".join(title) for group, title in zip(groups, heads, strict=True)}
    return of_groups | cell_names(list(by_key.values()))


def _alike(findings: Iterable[Finding]) -> list[_Alike]:
    """Return findings of one code, severity, variable, cause and profile once, in the order of their gravest."""
    sets: dict[tuple[object, ...], _Alike] = {}
    for finding in findings:
        cause = finding.because and finding.because.code
        key = (finding.profile, finding.code, finding.severity, finding.values.get("variable"), cause)
        alike = sets.setdefault(key, _Alike(finding, {}))
        alike.members.setdefault((finding.cell_key or finding.group, finding.about), finding)
    return list(sets.values())


def _table(label: str, alike: Sequence[_Alike], names: Names, cells: int) -> Table:
    rows = []
    for worst, members in alike:
        listed = f" {_members(members.values(), names, cells)}" if len(members) > 1 else ""
        remedy = "" if worst.remedy is None else f"{filled(REMEDIES, worst.remedy.code, worst.remedy.values)}."
        rows += [
            [
                Cell(worst.severity, STYLES[worst.severity]),
                Cell(worst.rule.replace("_", "-")),
                Cell(f"{evidence(worst, _name(worst, names))}{listed}"),
            ],
            *([[Cell(""), Cell(""), Cell(remedy, "dim")]] if remedy else []),
        ]
    columns = [Column("", right=False), Column("", right=False), Column("", right=False, folds=True)]
    return Table(one_line(label), columns, rows)


def _members(findings: Collection[Finding], names: Names, cells: int) -> str:
    """Return ``2 of 12 cells are affected, worst first: mlp (torch, train), mlp (jax, train).``, or so of GPUs."""
    if all(finding.cell_key for finding in findings):
        count = f"{len(findings)} of {counted(cells, 'cell')}"
    else:
        count = counted(len(findings), "GPU" if all("board" in finding.values for finding in findings) else "group")
    return f"{count} are affected, worst first: {several([_name(finding, names) for finding in findings])}."


def _name(finding: Finding, names: Names) -> str:
    """Return the name of the GPU, cell or group that has it; empty: the profile as a whole has it."""
    of_key = names.get((finding.profile, finding.cell_key)) or names.get((finding.profile, finding.group))
    return one_line(str(finding.values.get("board") or of_key or finding.group))


def evidence(finding: Finding, who: str) -> str:
    """Return a finding's evidence in words; `who` is the cell's or the group's name."""
    because = {} if finding.because is None else {"because": sentence(finding.because)}
    return filled(FINDINGS, finding.code, {"who": who, **because, **finding.values})


def _unread(audit: Audit) -> list[str]:
    return [f"not audited: {profile.error}" for profile in audit.profiles if profile.error]


def _closing(audit: Audit) -> list[str]:
    """Return how many rules found nothing, and what could not be checked, by what is missing."""
    quiet = sum(of.outcome == "nothing_found" for of in audit.rules)
    apart = sum(of.outcome == "not_applicable" for of in audit.rules)
    lines = [f"{counted(quiet, 'rule')} found nothing{f'; {apart} did not apply' if apart else ''}."]
    if audit.not_checked:
        lines.append(_not_checked_line(audit))
    if audit.findings:
        lines.append(f"{RULES} explains each rule.")
    return lines


def _not_checked_line(audit: Audit) -> str:
    """Return which rules lacked something, by what that is, gravest first; JSON lists them all."""
    by_reason: dict[str, dict[str, list[NotChecked]]] = {}
    for missing in audit.not_checked:
        why = OF_PROFILE if missing.reason.code == "not_recorded" else CUT.split(sentence(missing.reason))[0]
        by_reason.setdefault(why, {}).setdefault(missing.rule, []).append(missing)

    def gravity(item: tuple[str, dict[str, list[NotChecked]]]) -> tuple[int, int]:
        severities = [SEVERITIES.index(missing.severity) for alike in item[1].values() for missing in alike]
        return -max(severities), -len(item[1])

    reasons = sorted(by_reason.items(), key=gravity)
    parts = []
    for why, rules in reasons[:REASONS_MAX]:
        names = [_missing_name(rule, alike) for rule, alike in rules.items()]
        more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX + 1 else ""
        parts.append(f"{', '.join(names[:NAMES_MAX] if more else names)}{more} ({why})")
    rest = len({rule for _, rules in reasons[REASONS_MAX:] for rule in rules})
    if rest:
        parts.append(f"{counted(rest, 'more rule')} (see --json)")
    asked, lacking = len(audit.rules), len({missing.rule for missing in audit.not_checked})
    return f"Could not check {lacking} of {counted(asked, 'rule')}: {'; '.join(parts)}."


def _missing_name(rule: str, alike: Sequence[NotChecked]) -> str:
    missing, of = sum(item.cells for item in alike), sum(item.of_cells for item in alike)
    return f"{rule.replace('_', '-')}{'' if missing == of else f' in {missing} of {of} cells'}"


def _records(audit: Audit, names: Names) -> list[dict[str, object]]:
    """Return a record a finding, one a rule that could not check or found nothing, and one a file that is none."""
    findings: list[dict[str, object]] = [
        {
            "outcome": "finding",
            "profile": finding.profile,
            "rule": finding.rule.replace("_", "-"),
            "severity": finding.severity,
            "subject": _name(finding, names),
            "rank": finding.rank,
            "cells": 1,
        }
        for finding in audit.findings
    ]
    missing: list[dict[str, object]] = [
        {
            "outcome": "not_checked",
            "profile": of.profile,
            "rule": of.rule.replace("_", "-"),
            "could_be": of.severity,
            "subject": sentence(of.reason),
            "cells": of.cells,
        }
        for of in audit.not_checked
    ]
    quiet: list[dict[str, object]] = [
        {"outcome": of.outcome, "rule": of.rule.replace("_", "-"), "cells": 0}
        for of in audit.rules
        if of.outcome in ("nothing_found", "not_applicable")
    ]
    unread: list[dict[str, object]] = [
        {"outcome": "unreadable", "profile": profile.label, "subject": profile.error, "cells": 0}
        for profile in audit.profiles
        if profile.error
    ]
    return [*findings, *missing, *quiet, *unread]


def _cases(audit: Audit, names: Names, fail_on: Severity) -> list[Case]:
    """Return a case a rule: failed by its gravest finding, skipped where it could not check."""
    cases = []
    for of in audit.rules:
        if of.outcome == "not_applicable":
            continue
        case = Case(of.rule.replace("_", "-"), "kit audit")
        findings = [finding for finding in audit.findings if finding.rule == of.rule]
        missing = [item for item in audit.not_checked if item.rule == of.rule]
        lines = [evidence(finding, _name(finding, names)) for finding in findings]
        if any(finding.severity in at_least(fail_on) for finding in findings):
            case = case._replace(outcome="failed", words=" ".join(lines), kind=findings[0].severity)
        elif missing:
            case = case._replace(outcome="skipped", words=f"could not check: {sentence(missing[0].reason)}")
        cases.append(case._replace(output="" if case.outcome == "failed" else " ".join(lines)))
    cases += [
        Case(profile.label, "kit audit", "error", profile.error, "not readable")
        for profile in audit.profiles
        if profile.error
    ]
    return cases
