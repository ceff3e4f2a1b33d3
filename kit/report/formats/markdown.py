"""Markdown, for a pull request or a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from kit.report.plain import markdown
from kit.report.table import Footnotes, Report, Table


def write(report: Report, _stream: IO[str]) -> str:
    """Return headline, tables, sentences, notes and the next commands."""
    footnotes = Footnotes()
    parts = ["  \n".join(markdown(line) for line in report.headline)]
    for table in report.tables:
        parts += [f"### {markdown(table.title)}"] if table.title and table.columns[0].title else []
        parts.append("\n".join(_table(table, footnotes)))
        parts += map(markdown, table.sentences)
    parts.append(
        "\n".join(f"- {markdown(line)}" for line in [*footnotes.lines(), *report.notes, *report.hint.splitlines()])
    )
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"


def _table(table: Table, footnotes: Footnotes) -> Iterator[str]:
    first, *others = table.columns
    titles = [first.title or table.title, *(" · ".join(filter(None, (column.over, column.title))) for column in others)]
    yield _line([markdown(title) for title in titles])
    yield _line(["---:" if column.right else ":---" for column in table.columns])
    for row in table.rows:
        yield _line([markdown(footnotes.words(cell)) for cell in row])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
