"""Cells that a comparison could not compare, and why: a gate that passes must not hide them."""

from __future__ import annotations

from collections import Counter

from kit.compare.rows import Comparison, Row
from kit.compare.unpaired import paired_rows

NOTHING_PASSED = "nothing was compared, so nothing has passed the gate"


def not_compared(comparison: Comparison) -> Counter[str]:
    """Why -> how many rows: without a number, without a partner, or kept apart by the gate. Baselines have none."""
    alone = rows_alone(comparison)
    return Counter(why for row in comparison.rows if (why := _why(row, alone=id(row) in alone)) is not None)


def is_empty(comparison: Comparison) -> bool:
    """Whether not a single row has a difference from its baseline."""
    return not any(row.versus is not None and row.versus.time_ratio is not None for row in comparison.rows)


def is_undecided(row: Row) -> bool:
    """Whether the row has a difference, and the verdict that it is not resolved."""
    return row.versus is not None and row.versus.time_ratio is not None and row.versus.verdict == "unresolved"


def rows_alone(comparison: Comparison) -> set[int]:
    """Ids of the rows whose cell the baseline profile or all others lack; of one profile none."""
    if comparison.kind != "profiles":
        return set()
    return {id(row) for row in comparison.rows} - {id(row) for row in paired_rows(comparison.rows)}


def _why(row: Row, *, alone: bool) -> str | None:
    if alone:
        return f"only in {row.profile}"
    if row.is_baseline:
        return None
    if row.versus is None:
        return row.no_verdict or "no verdict"
    return "too few launches" if row.versus.time_ratio is None else None
