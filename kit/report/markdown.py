"""A comparison as Markdown (GitHub's tables): one table a group, notes below."""

from __future__ import annotations

from kit.compare.overview import many
from kit.compare.rows import Comparison
from kit.report.columns import table_of
from kit.report.layout import Column, Group, Table
from kit.report.markdown_text import escape
from kit.report.overview import overview_headline, overview_tables
from kit.report.plain import SENTENCE_MAX


def render(comparison: Comparison) -> str:
    """Headline, one table a group, footnotes, notes; of many profiles, an overview instead of every row."""
    in_brief = many(comparison)
    headline = overview_headline(comparison) if in_brief else comparison.headline
    blocks = ["\n".join(f"- {escape(line)}" for line in headline)]
    for table in overview_tables(comparison) if in_brief else [table_of(comparison)]:
        blocks += _table(table)
    if comparison.notes:
        blocks.append("\n".join(f"- {escape(note, SENTENCE_MAX)}" for note in comparison.notes))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _table(table: Table) -> list[str]:
    blocks = [_group(group, table.columns) for group in table.groups]
    if table.footnotes:
        blocks.append("\\\n".join(escape(line) for line in table.footnotes))
    return blocks


def _group(group: Group, columns: list[Column]) -> str:
    titles = [escape(column.name) for column in columns]
    return "\n".join(
        [
            f"### {escape(group.title)}",
            "",
            _line(titles),
            _line(["---:" if column.right else ":---" for column in columns]),
            *(_line([escape(cell) for cell in line.cells]) for line in group.lines),
        ]
    )


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
