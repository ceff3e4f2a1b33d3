"""Rows that got slower by more than was allowed."""

from __future__ import annotations

from kit.compare.rows import Comparison, Row


def slower_rows(comparison: Comparison, allowed_pct: float) -> list[Row]:
    """Rows with the verdict "slower" whose step time grew by more than `allowed_pct` percent."""
    return [
        row
        for row in comparison.rows
        if row.versus is not None
        and row.versus.verdict == "slower"
        and row.versus.time_ratio is not None
        and row.versus.time_ratio > 1 + allowed_pct / 100
    ]
