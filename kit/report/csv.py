"""A comparison as CSV (RFC 4180): one row a cell, the unit in the column's name, empty for null.

Numbers have six significant digits, or are whole from a million on: `kit compare --json` has every digit.
"""

from __future__ import annotations

import csv
import io
import math

from kit.compare.rows import Comparison, Row
from kit.profile.schema import Estimate
from kit.report.plain import one_line

# Spreadsheets run a cell that begins with one of these as a formula (OWASP, "CSV Injection").
FORMULA_STARTS = ("=", "+", "-", "@")
ESTIMATES = {
    "step_ns": "step{}_ns",
    "step_p95_ns": "step_p95{}_ns",
    "samples_per_s": "samples{}_per_s",
    "sample_ns": "sample{}_ns",
    "compile_ns": "compile{}_ns",
    "joules_per_sample_j": "energy_per_sample{}_j",
    "accuracy": "accuracy{}",
}

# More than any measurement here is good for.
DIGITS = 6

Value = str | int | float | bool | None


def render(comparison: Comparison) -> str:
    """A header and a line for each row; empty where there are no rows."""
    rows = [_row(row, comparison.baseline) for row in comparison.rows]
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _safe(_rounded(value)) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _row(row: Row, baseline: str | None) -> dict[str, Value]:
    cell = row.cell
    values: dict[str, Value] = {
        "profile": row.profile,
        "workload": cell.workload,
        "task": cell.task,
        "backend": cell.backend,
        "compile_mode": cell.compile_mode,
        "device": cell.device,
        "devices": cell.devices,
        "batch": cell.batch,
        "precision": cell.precision,
        "feed": cell.feed,
        "data": row.data,
        "status": row.status,
        "problem": row.problem,
        "launches": row.launches,
        "launches_seen": row.launches_seen,
    }
    for field, column in ESTIMATES.items():
        values |= _estimate(getattr(row.summary, field), column)
    # No interval: a mean of percentages has no bound that it keeps to, and would pass below zero.
    cpu = row.summary.process_cpu_pct
    values |= {"process_cpu_pct": None if cpu is None else cpu.value}
    values |= {"warmup_steps": row.summary.warmup_steps, "peak_memory_b": row.summary.peak_memory_b}
    values |= {f"no_{field}_because": row.summary.reasons.get(field) for field in ("joules_per_sample_j", "accuracy")}
    values["accuracy_updates"] = row.accuracy_updates
    values["parity_agrees"] = None if row.parity is None else row.parity.agrees
    return values | _versus(row, baseline)


def _estimate(estimate: Estimate | None, column: str) -> dict[str, Value]:
    return {
        column.format(""): None if estimate is None else estimate.value,
        column.format("_low"): None if estimate is None else estimate.low,
        column.format("_high"): None if estimate is None else estimate.high,
    }


def _versus(row: Row, baseline: str | None) -> dict[str, Value]:
    versus = row.versus
    return {
        "baseline": baseline,
        "is_baseline": row.is_baseline,
        "verdict": None if versus is None else versus.verdict,
        "no_verdict_because": row.no_verdict,
        "time_ratio": None if versus is None else versus.time_ratio,
        "time_ratio_low": None if versus is None else versus.time_ratio_low,
        "time_ratio_high": None if versus is None else versus.time_ratio_high,
        "p": None if versus is None else versus.p,
        "p_adjusted": None if versus is None else versus.p_adjusted,
        "launches_to_settle": None if versus is None else versus.launches_to_settle,
    }


def _rounded(value: Value) -> Value:
    """A number without the digits that mean nothing: whole from a million on, else to `DIGITS` significant digits."""
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    if abs(value) >= 10**DIGITS:
        return round(value)
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


def _safe(value: Value) -> Value:
    """Text made harmless for terminals and spreadsheets; numbers as they are, `true` and `false` in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
