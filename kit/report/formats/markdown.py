"""Markdown, for a pull request or a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import IO

from kit.report.report_table import Footnotes, Report, Table
from kit.report.values_in_words import one_line

# Wherever they stand; a letter or digit on both sides makes nothing of `_`, and only some of what follows `#`, `:` and
# `&` makes a reference, an address, an emoji or an entity of them, as `www` does of a full stop.
MARKDOWN_SPECIAL = re.compile(
    r"[\\`*\[\]<>|~$@]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|#(?=\d)|:(?=//|[A-Za-z_+-]|\d+:)|&(?=[#A-Za-z])|(?<=www)\."
)
# At the beginning of a line: a heading, a rule, an item of a list.
MARKDOWN_BEGINNING = re.compile(r"^\s*(?:\d+(?=[.)](?:\s|$))|(?=(?:#+|[-+=]+)(?:\s|$)))")


def write(report: Report, _stream: IO[str]) -> str:
    """Return headline, tables, sentences, notes and the next commands."""
    footnotes = Footnotes()
    parts = ["  \n".join(escaped(line) for line in report.headline)]
    for table in report.tables:
        parts += [f"### {escaped(table.title)}"] if table.title and table.columns[0].title else []
        parts.append("\n".join(_table(table, footnotes)))
        parts += map(escaped, table.sentences)
    parts.append(
        "\n".join(f"- {escaped(line)}" for line in [*footnotes.lines(), *report.below(), *report.hint.splitlines()])
    )
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"


def escaped(text: str) -> str:
    """Return `text` so that Markdown shows it as it is: no link, no markup, no new column."""
    return MARKDOWN_BEGINNING.sub(r"\g<0>\\", MARKDOWN_SPECIAL.sub(r"\\\g<0>", one_line(text)))


def _table(table: Table, footnotes: Footnotes) -> Iterator[str]:
    first, *others = table.columns
    titles = [first.title or table.title, *(" · ".join(filter(None, (column.over, column.title))) for column in others)]
    yield _line([escaped(title) for title in titles])
    yield _line(["---:" if column.right else ":---" for column in table.columns])
    for row in table.rows:
        yield _line([escaped(footnotes.words(cell)) for cell in row])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
