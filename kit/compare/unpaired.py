"""Rows of several profiles that have nobody to stand beside: they are named below the table, not shown in it."""

from __future__ import annotations

from collections.abc import Sequence

from kit.compare.rows import Row

# More names than these are a list nobody reads.
NAMED_MAX = 6


def paired_rows(rows: Sequence[Row]) -> list[Row]:
    """Rows whose cell the baseline profile and another one have."""
    paired = {row.cell for row in rows if row.is_baseline} & {row.cell for row in rows if not row.is_baseline}
    return [row for row in rows if row.cell in paired]


def unpaired_notes(rows: Sequence[Row]) -> list[str]:
    """``Only in b: mlp/torch/…, …``: one line for each set of profiles that has such cells."""
    paired = {row.cell for row in paired_rows(rows)}
    labels_of: dict[str, list[str]] = {}
    for row in rows:
        if row.cell not in paired:
            labels_of.setdefault(row.cell.key, []).append(row.profile)
    keys_of: dict[str, list[str]] = {}
    for key, labels in labels_of.items():
        keys_of.setdefault(", ".join(labels), []).append(key)
    return [f"Only in {labels}: {_named(keys)}." for labels, keys in keys_of.items()]


def _named(keys: Sequence[str]) -> str:
    rest = len(keys) - NAMED_MAX
    return ", ".join(keys[:NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")
