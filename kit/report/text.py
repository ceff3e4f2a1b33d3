"""A comparison as an aligned table for a terminal or a text file. Never cut off: its width is what it needs."""

from __future__ import annotations

from rich.text import Text

from kit.compare.overview import many
from kit.compare.rows import Comparison, Row
from kit.report.columns import table_of
from kit.report.grid import GAP, aligned, column_widths
from kit.report.layout import Table
from kit.report.overview import overview_headline, overview_tables
from kit.report.plain import one_line
from kit.report.terminal import to_string, wrapped

INDENT = "  "
TITLE_STYLE = "bold cyan"
VERDICT_STYLE = {"faster": "green", "slower": "red", "same": "", "unresolved": "yellow"}


def render(comparison: Comparison, *, color: bool = False) -> str:
    """Lay the comparison out, of many profiles an overview; with `color`, ANSI colours for a terminal."""
    in_brief = many(comparison)
    headline = overview_headline(comparison) if in_brief else comparison.headline
    tables = overview_tables(comparison) if in_brief else [table_of(comparison)]
    lines = [Text(one_line(line), style="bold") for line in headline]
    lines += [line for table in tables if table.groups for line in _body(table)]
    lines.append(Text())
    lines += [line for table in tables for footnote in table.footnotes for line in wrapped(footnote, "dim")]
    for note in comparison.notes:
        # Notes that must not be overlooked begin in capitals.
        lines += wrapped(f"· {one_line(note)}", "bold yellow" if note.split()[0].isupper() else "dim")
    return to_string(lines, color=color)


def _body(table: Table) -> list[Text]:
    titles = [column.title for column in table.columns]
    subtitles = [column.subtitle for column in table.columns]
    right = [column.right for column in table.columns]
    widths = column_widths([titles, subtitles, *(line.cells for group in table.groups for line in group.lines)])
    total = len(INDENT) + sum(widths) + len(GAP) * (len(widths) - 1)
    lines = [
        Text(),
        Text(INDENT + GAP.join(aligned(titles, widths, right)), style="bold"),
        Text(INDENT + GAP.join(aligned(subtitles, widths, right)), style="dim"),
        Text("─" * total, style="dim"),
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
