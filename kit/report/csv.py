"""A comparison as CSV (RFC 4180): one row a cell, the unit in the column's name, empty for null.

Numbers have six significant digits, or are whole from a million on: `kit compare --json` has every digit.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from functools import lru_cache

from kit.compare.rows import Comparison, Row
from kit.profile.cell import Cell
from kit.profile.schema import Estimate
from kit.report.spreadsheet_text import harmless_cell

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
# With as many digits it rounds to a million, and would be written as 1e+06.
WHOLE_FROM = 10**DIGITS - 0.5

# Rows laid out at a time: a few hundred kilobytes, whatever the number of profiles.
ROWS_AT_A_TIME = 1000
# Texts that were made harmless and are kept: reasons and names are the same in most rows.
TEXTS_KEPT = 4096

Value = str | float | None

CELL = ("workload", "task", "backend", "compile_mode", "device", "devices", "batch", "precision", "feed")
REASONS = ("joules_per_sample_j", "accuracy")
COLUMNS = (
    "profile",
    *CELL,
    "data",
    "status",
    "problem",
    "launches",
    "launches_seen",
    *(column.format(end) for column in ESTIMATES.values() for end in ("", "_low", "_high")),
    "process_cpu_pct",
    "warmup_steps",
    "peak_memory_b",
    *(f"no_{field}_because" for field in REASONS),
    "accuracy_updates",
    "parity_agrees",
    "baseline",
    "is_baseline",
    "verdict",
    "no_verdict_because",
    "forced",
    "time_ratio",
    "time_ratio_low",
    "time_ratio_high",
    "p",
    "p_adjusted",
    "launches_compared",
    "paired",
    "launches_to_settle",
)


def render(comparison: Comparison) -> str:
    """A header and a line for each row; empty where there are no rows."""
    return "".join(pieces(comparison))


def pieces(comparison: Comparison) -> Iterator[str]:
    """`render` in pieces."""
    baseline = _safe(comparison.baseline)
    for start in range(0, len(comparison.rows), ROWS_AT_A_TIME):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not start:
            writer.writerow(COLUMNS)
        writer.writerows(_values(row, baseline) for row in comparison.rows[start : start + ROWS_AT_A_TIME])
        yield text.getvalue()


def _values(row: Row, baseline: Value) -> list[Value]:
    """In the order of `COLUMNS`."""
    summary, versus = row.summary, row.versus
    return [
        _safe(row.profile),
        *_cell(row.cell),
        _safe(row.data),
        row.status,
        _safe(row.problem),
        row.launches,
        row.launches_seen,
        *_estimate(summary.step_ns),
        *_estimate(summary.step_p95_ns),
        *_estimate(summary.samples_per_s),
        *_estimate(summary.sample_ns),
        *_estimate(summary.compile_ns),
        *_estimate(summary.joules_per_sample_j),
        *_estimate(summary.accuracy),
        # No interval: a mean of percentages has no bound that it keeps to, and would pass below zero.
        None if summary.process_cpu_pct is None else _number(summary.process_cpu_pct.value),
        summary.warmup_steps,
        summary.peak_memory_b,
        *(_safe(summary.reasons.get(field)) for field in REASONS),
        row.accuracy_updates,
        None if row.parity is None else _truth(row.parity.agrees),
        baseline,
        _truth(row.is_baseline),
        None if versus is None else versus.verdict,
        _safe(row.no_verdict),
        _safe(row.forced),
        *(
            (None,) * 5
            if versus is None
            else map(
                _number,
                (versus.time_ratio, versus.time_ratio_low, versus.time_ratio_high, versus.p, versus.p_adjusted),
            )
        ),
        *((None,) * 3 if versus is None else (versus.launches, _truth(versus.paired), versus.launches_to_settle)),
    ]


@lru_cache(TEXTS_KEPT)
def _cell(cell: Cell) -> tuple[Value, ...]:
    values = [getattr(cell, field) for field in CELL]
    return tuple(_safe(value) if isinstance(value, str) else value for value in values)


def _estimate(estimate: Estimate | None) -> tuple[Value, Value, Value]:
    if estimate is None:
        return None, None, None
    return _number(estimate.value), _number(estimate.low), _number(estimate.high)


def _number(value: float | None) -> Value:
    """Without the digits that mean nothing: whole from a million on, else with `DIGITS` significant digits."""
    if value is None:
        return None
    if math.isfinite(value) and abs(value) >= WHOLE_FROM:
        return round(value)
    return f"{value + 0.0:.{DIGITS}g}"  # adding zero takes the sign off a negative one


def _truth(value: bool | None) -> Value:
    return None if value is None else "true" if value else "false"


def _safe(text: str | None) -> Value:
    return None if text is None else _harmless(text)


@lru_cache(TEXTS_KEPT)
def _harmless(text: str) -> str:
    """For terminals and spreadsheets."""
    return harmless_cell(text)
