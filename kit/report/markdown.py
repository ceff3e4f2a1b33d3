"""A comparison as Markdown: a table a group, for a pull request or a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kit.compare.rows import Comparison, GroupRows
from kit.report.columns import Column, alike, columns_of, titles_of
from kit.report.conclusions import group_sentences
from kit.report.plain import markdown
from kit.report.words import RenderOptions, headline, mismatch_lines, note_lines, why_lines


def render(comparison: Comparison, options: RenderOptions) -> str:
    """Return headline, tables, sentences and notes."""
    titles, wide = options.titles, options.wide
    lines = ["  \n".join(markdown(line) for line in headline(comparison, titles))]
    parted = [(group, columns_of(own, by=comparison.by, wide=wide)) for own in alike(comparison) for group in own]
    for group, columns in parted:
        lines.append("\n".join(_table(group, columns)))
        said = group_sentences(group, titles)
        lines += map(markdown, said)
        for one in why_lines(group, whole=wide):
            tried = "" if one.remedy is None else f" {one.remedy}."
            lines.append(f"- {markdown(f'{one.evidence}{tried} {one.more}')}")
    notes = [*note_lines(comparison), *mismatch_lines(comparison)]
    return "\n\n".join([*lines, "\n".join(f"- {markdown(line)}" for line in notes)]).rstrip() + "\n"


def _table(group: GroupRows, columns: Sequence[Column]) -> Iterator[str]:
    yield _line([markdown(title) for title in titles_of(columns, group)])
    yield _line(["---:" if column.right else ":---" for column in columns])
    for row in group.rows:
        yield _line([markdown(column.show(row)) for column in columns])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
