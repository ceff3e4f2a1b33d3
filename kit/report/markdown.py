"""A comparison as Markdown (GitHub's tables): one table a group, notes below."""

from __future__ import annotations

import re

from kit.compare.rows import Comparison
from kit.report.columns import Column, Group, table_of
from kit.report.plain import one_line

# Characters that Markdown would read as layout.
SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


def render(comparison: Comparison) -> str:
    """Headline, one table a group, footnotes, notes."""
    table = table_of(comparison)
    blocks = ["\n".join(f"- {escape(line)}" for line in comparison.headline)]
    blocks += [_group(group, table.columns) for group in table.groups]
    if table.footnotes:
        blocks.append("\\\n".join(escape(line) for line in table.footnotes))
    if comparison.notes:
        blocks.append("\n".join(f"- {escape(note)}" for note in comparison.notes))
    return "\n\n".join(block for block in blocks if block) + "\n"


def escape(text: str) -> str:
    """One harmless line: no layout characters, no line breaks, no HTML."""
    return SPECIAL.sub(r"\\\1", one_line(text).replace("&", "&amp;"))


def _group(group: Group, columns: list[Column]) -> str:
    titles = [escape(f"{column.title} {column.subtitle}".replace("- ", "").strip()) for column in columns]
    return "\n".join(
        [
            f"### {escape(group.title)}",
            "",
            _line(titles),
            _line(["---:" if column.right else ":---" for column in columns]),
            *(_line([escape(cell) for cell in cells]) for cells in group.cells),
        ]
    )


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
