"""A comparison as an aligned table for a terminal or a text file.

Nothing is cut off: a file's lines are as long as they need to be, a terminal that is too narrow gets fewer columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from kit.compare.overview import many
from kit.compare.rows import Comparison, Row
from kit.report.columns import DISPENSABLE, has_numbers, table_of
from kit.report.grid import GAP, aligned, column_widths
from kit.report.layout import Table
from kit.report.overview import overview_headline, overview_tables
from kit.report.plain import one_line, sentence
from kit.report.terminal import to_string, wrapped

INDENT = "  "
TITLE_STYLE = "bold cyan"
VERDICT_STYLE = {"faster": "green", "slower": "red", "same": "", "unresolved": "yellow"}


def render(comparison: Comparison, *, color: bool = False, width: int | None = None) -> str:
    """Lay the comparison out, of many profiles an overview.

    Args:
        comparison: to be shown.
        color: with ANSI colours for a terminal.
        width: of the terminal, in characters; null: as wide as it needs to be.
    """
    in_brief = many(comparison)
    headline = overview_headline(comparison) if in_brief else comparison.headline
    tables, left_out = (overview_tables(comparison), []) if in_brief else _fitting(comparison, width)
    lines = [Text(one_line(line), style="bold") for line in headline]
    lines += [line for table in tables if table.groups for line in _body(table)]
    lines.append(Text())
    lines += [line for table in tables for footnote in table.footnotes for line in wrapped(footnote, "dim", width)]
    for note in [*comparison.notes, *_left_out_note(left_out)]:
        # Notes that must not be overlooked begin in capitals.
        lines += wrapped(f"· {sentence(note)}", "bold yellow" if note.split()[0].isupper() else "dim", width)
    return to_string(lines, color=color)


def _fitting(comparison: Comparison, width: int | None) -> tuple[list[Table], list[str]]:
    """The table without the dispensable columns that keep it from fitting, and their names."""
    table = table_of(comparison)
    if width is None or not table.groups or _width(table) <= width:
        return [table], []
    left_out: list[str] = []
    for name in sorted(DISPENSABLE, key=lambda name: has_numbers(table, name)):
        left_out.append(name)
        if _width(table_of(comparison, left_out)) <= width:
            break
    # Where a wide one had to go, narrow ones that went before it may fit again.
    for name in left_out[::-1]:
        others = [other for other in left_out if other != name]
        if _width(table_of(comparison, others)) <= width:
            left_out = others
    return [table_of(comparison, left_out)], left_out


def _left_out_note(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [f"Not shown, as the terminal is too narrow: {', '.join(names)}; a pipe, a file and --format csv have all."]


def _widths(table: Table) -> list[int]:
    titles = [[column.title for column in table.columns], [column.subtitle for column in table.columns]]
    return column_widths([*titles, *(line.cells for group in table.groups for line in group.lines)])


def _width(table: Table) -> int:
    widths = _widths(table)
    return len(INDENT) + sum(widths) + len(GAP) * (len(widths) - 1)


def _body(table: Table) -> list[Text]:
    titles = [column.title for column in table.columns]
    subtitles = [column.subtitle for column in table.columns]
    right = [column.right for column in table.columns]
    widths = _widths(table)
    lines = [
        Text(),
        Text(INDENT + GAP.join(aligned(titles, widths, right)), style="bold"),
        Text(INDENT + GAP.join(aligned(subtitles, widths, right)), style="dim"),
        Text("─" * _width(table), style="dim"),
    ]
    for number, group in enumerate(table.groups):
        lines += [Text()] if number else []
        lines.append(Text(group.title, style=TITLE_STYLE))
        for cells, row in group.lines:
            *numbers, verdict = aligned(cells, widths, right)
            line = Text(INDENT + GAP.join(numbers) + GAP, style="red" if row is not None and row.problem else "")
            lines.append(line.append(verdict, style=_verdict_style(row)))
    return lines


def _verdict_style(row: Row | None) -> str:
    if row is None:
        return ""
    return "dim" if row.versus is None else VERDICT_STYLE[row.versus.verdict]
