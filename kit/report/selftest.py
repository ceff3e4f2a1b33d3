"""The hardware self-test as a report: a row for each check, passed, failed or not checked, with its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kit.report.machine import machine_lines
from kit.report.plain import one_line
from kit.report.quantity import counted
from kit.report.sentences import Templates, filled, sentence
from kit.report.table import Case, Cell, Column, Report, Table

if TYPE_CHECKING:
    from kit.runner.hardware.first_hour import FirstHour

# In the order of their rows: words, color, and outcome of a test case.
STATUSES: dict[str, tuple[str, str, Literal["passed", "failed", "skipped"]]] = {
    "fail": ("FAIL", "red", "failed"),
    "not_checked": ("could not check", "yellow", "skipped"),
    "pass": ("pass", "green", "passed"),
}
INTERVAL = "{difference_pct:+.2f} % ± {half_width_pct:.2f} %; the limit is {limit_pct:g} %"
# Title, and what its numbers say; empty: their names and values.
CHECKS = {
    "board_power_cap": ("power cap", "{cap_w} of {default_w}"),
    "board_slices": ("MIG mode", "{found}"),
    "board_exclusive": ("compute mode", "{found}"),
    "board_processes": ("other processes", "{found}"),
    "board_throttled": ("throttled", "{share_pct} of readings {causes}"),
    "sensor_reads": ("cost of sensors", "{tick_ns} per reading of all; the slowest is {dearest}, {dearest_ns}"),
    "sensor_period": ("update period", "updated every {period_ns}"),
    "sensor_lag": (
        "lag behind load",
        "{lag_ns} (delay {delay_ns}, mean over {window_ns}); the limit is {lag_limit_ns}",
    ),
    "sensor_gain": (
        "gain under load",
        "{gain:.3f} of the device's power, {load_w} under load; the limits are 1 ± {limit_pct:g} %",
    ),
    "sampler_cost": ("cost of the sampler", INTERVAL),
    "wait": ("empty wait", "{wait_ns}, for {per_wait} steps: {share_pct} of their time"),
    "ranks": ("latency against throughput", "by latency {by_latency}; by throughput {by_step}, which verdicts use"),
    "bursts": ("bursts against 12 s", INTERVAL),
    "device_clock": ("device clock", "{host_ns} by the host, {device_ns} by the device"),
    "targets": ("targets", "{place}"),
    "energy_counter": ("counter against power", "counter {counter_w}, power {power_w}"),
    "framework": ("framework", ""),
    "members_together": ("memory for all workers", "{members} workers at once"),
    "beside_stopped": ("with paused workers", INTERVAL),
    "memory_share": ("memory fraction", f"0.3 against 0.9: {INTERVAL}"),
    "idle_power": (
        "idle power",
        "{members_0_w} without workers, {members_1_w} with one, {members_3_w} with three, all paused",
    ),
    "parity": ("parity with the CPU", "losses differ by {difference:.1g}; the limit is {tolerance:.0g}"),
}
DETAILS: Templates = {code: details for code, (_, details) in CHECKS.items() if details}


def hardware_report(record: FirstHour) -> Report:
    """Return what `kit selftest --device` prints."""
    rows, records, cases = [], [], []
    for check in sorted(record.checks, key=lambda check: list(STATUSES).index(check.status)):
        words, style, outcome = STATUSES[check.status]
        title, _ = CHECKS.get(check.code, (check.code.replace("_", " "), ""))
        numbers = filled(DETAILS, check.code, check.values) if check.values else ""
        why = sentence(check.reason) if check.reason is not None else ""
        detail = one_line("; ".join(part for part in (why, numbers) if part))
        rows.append([Cell(one_line(title)), Cell(one_line(check.subject)), Cell(words, style), Cell(detail)])
        kind = "" if check.status == "pass" else check.code
        cases.append(Case(f"{check.code} {check.subject}", "hardware", outcome, detail, kind, detail))
        named = {"check": check.code, "of": check.subject, "status": check.status, "detail": detail}
        records.append({**named, **check.values})
    lines = machine_lines(record.identity)
    boards = [f"{name}: {value}" for name, value in lines.items() if name.startswith(record.device)]
    counts = {status: sum(check.status == status for check in record.checks) for status in STATUSES}
    result = f"{counts['pass']} passed, {counts['fail']} failed, {counts['not_checked']} could not be checked"
    interrupted = ["interrupted, so the other checks did not run"] if record.interrupted else []
    columns = [Column(name, right=False, folds=name == "detail") for name in ("check", "subject", "status", "detail")]
    return Report(
        name="kit selftest",
        headline=[one_line(line) for line in (*boards, f"{lines['CPU']} · kit {record.kit.version}")],
        tables=[Table("", columns, rows)],
        notes=[*interrupted, f"{counted(len(record.checks), 'check')}: {result}"],
        records=records,
        cases=cases,
        document=record,
    )
