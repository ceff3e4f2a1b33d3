"""Tables in words, ready to be laid out as text or Markdown."""

from __future__ import annotations

from typing import NamedTuple

from kit.compare.rows import Row
from kit.profile.cell import Cell
from kit.report.plain import one_line


class Column(NamedTuple):
    """A column's title in two short lines."""

    title: str
    subtitle: str
    right: bool  # numbers are aligned at their end

    @property
    def name(self) -> str:
        """Both lines in one: ``samples per s``."""
        return f"{self.title} {self.subtitle}".strip()


class Line(NamedTuple):
    """One line of a table, and the row that it shows where it shows one."""

    cells: list[str]
    row: Row | None = None


class Group(NamedTuple):
    """Lines under one title."""

    title: str
    lines: list[Line]


class Table(NamedTuple):
    """Everything in words."""

    columns: list[Column]
    groups: list[Group]
    footnotes: list[str]


def group_title(cell: Cell) -> str:
    """``mlp · train · batch 128 · cpu · float32 · device feed``."""
    count = f"{cell.devices} × " if cell.devices > 1 else ""
    parts = (
        cell.workload,
        cell.task,
        f"batch {cell.batch}",
        f"{count}{cell.device}",
        cell.precision,
        f"{cell.feed} feed",
    )
    return one_line(" · ".join(parts))
