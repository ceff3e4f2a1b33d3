"""The first hour on a device as a report: a row for each check, passed, failed or not checked, with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kit.audit.first_hour import Check, Status
from kit.compare.naming import cell_names
from kit.profile.schema import Profile
from kit.report.audit import evidence, remedy
from kit.report.machine import machine_lines
from kit.report.report_table import Case, Column, Report, Table, TableCell
from kit.report.sentences import sentence
from kit.report.values_in_words import counted, one_line

# Words, color, and outcome of a test case.
STATUSES: dict[Status, tuple[str, str, Literal["passed", "failed", "skipped"]]] = {
    "fail": ("FAIL", "red", "failed"),
    "not_checked": ("could not check", "yellow", "skipped"),
    "pass": ("pass", "green", "passed"),
}


def first_hour_report(profile: Profile, checks: Sequence[Check]) -> Report:
    """Return what `kit selftest --device` prints of a profile and its checks."""
    fits, timed = (
        [each.cell for each in profile.cells if (each.cell.task == "fit") == is_fit] for is_fit in (True, False)
    )
    names = cell_names(fits) | cell_names(timed)
    rows, records, cases = [], [], []
    for check in checks:
        words, style, outcome = STATUSES[check.status]
        rule, finding, detail = check.rule.replace("_", "-"), check.finding, ""
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
        notes=[*interrupted, f"{counted(len(checks), 'check')}: {result}", "docs/reference/audit explains each check."],
        records=records,
        cases=cases,
        document=list(checks),
    )
