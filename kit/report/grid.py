"""Cells in aligned columns, as wide as they need to be."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

GAP = "  "


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Widest cell of each column, in terminal cells."""
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def aligned(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    """Each cell padded to its column: numbers (`right`) at their end, words at their beginning."""
    return [
        " " * (width - cell_len(cell)) + cell if at_end else cell + " " * (width - cell_len(cell))
        for cell, width, at_end in zip(cells, widths, right, strict=True)
    ]


def grid(rows: Sequence[Sequence[str]], right: Sequence[bool], indent: str = "") -> list[str]:
    """One line a row."""
    widths = column_widths(rows)
    return [indent + GAP.join(aligned(cells, widths, right)).rstrip() for cells in rows]
