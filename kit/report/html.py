"""A report as HTML without scripts: tables that a notebook shows, and of which a page is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from kit.report.report_table import Column, Footnotes, Loud, Report, Table, TableCell
from kit.report.values_in_words import one_line

# Colors have a contrast of 4.5 and more on white and on black. A verdict is also said in words.
STYLE = """
.kit{font:14px/1.45 system-ui,sans-serif;color:var(--kit-text,inherit)}
.kit p{margin:.4em 0;max-width:80em}
.kit .head{font-weight:600}.kit .notes{font-size:.9em;padding-left:1.2em}.kit .notes li{margin:.2em 0}
.kit .scroll{overflow-x:auto;margin:.8em 0}
.kit table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap}
.kit caption{text-align:left;font-weight:600;padding:.2em 0}
.kit th,.kit td{padding:.2em .9em .2em 0;text-align:left;vertical-align:top;background:none}
.kit th.n,.kit td.n{text-align:right}
.kit td.f{white-space:normal;overflow-wrap:anywhere;min-width:14em;max-width:60em}
.kit thead tr:last-child th{border-bottom:1px solid currentColor;font-weight:500}
.kit tbody th{font-weight:400}
.kit .green{color:#0a7a3c}.kit .red{color:#c62828}.kit .yellow{color:#8a5d00}
@media screen and (prefers-color-scheme:dark){
.kit .green{color:#4cc38a}.kit .red{color:#ff8a80}.kit .yellow{color:#e2b340}}
"""


def fragment(report: Report) -> str:
    """Return headline, tables, sentences and notes as one element; it needs STYLE."""
    return f'<div class="kit">{"".join(_parts(report))}</div>'


def _parts(report: Report) -> Iterator[str]:
    footnotes = Footnotes()
    if report.headline:
        yield f'<p class="head">{"<br>".join(map(words_of, report.headline))}</p>'
    for table in report.tables:
        sentences = (f"<p>{words_of(sentence)}</p>" for sentence in table.sentences)
        yield f'<div class="part">{table_of(table, footnotes)}{"".join(sentences)}</div>'
    if notes := [*footnotes.lines(), *report.below()]:
        items = (f"<b>{words_of(line)}</b>" if isinstance(line, Loud) else words_of(line) for line in notes)
        yield f'<ul class="notes">{"".join(f"<li>{item}</li>" for item in items)}</ul>'


def words_of(text: str) -> str:
    """Return a text as HTML shows it: one line, no markup of its own."""
    return escape(one_line(text))


def table_of(table: Table, footnotes: Footnotes) -> str:
    """Return a table that scrolls where it is too wide, also by keyboard; its first column heads the rows."""
    body = "".join(f"<tr>{''.join(_cells(table.columns, row, footnotes))}</tr>" for row in table.rows)
    name = words_of(table.title)
    caption, head = f"<caption>{name}</caption>" if name else "", "".join(_head(table)) if table.has_header else ""
    # Not a region: a page with a landmark for each table has nothing but landmarks.
    region = f'class="scroll" role="group" tabindex="0" aria-label="{name or "Table"}"'
    return f"<div {region}><table>{caption}{head}<tbody>{body}</tbody></table></div>"


def _head(table: Table) -> Iterator[str]:
    yield "<thead>"
    if any(column.over for column in table.columns):
        yield "<tr>"
        for over, columns in groupby(table.columns, lambda column: column.over):
            span = len([*columns])
            name = words_of(over)
            yield f'<th colspan="{span}" scope="colgroup">{name}</th>' if over else f'<td colspan="{span}"></td>'
        yield "</tr>"
    titles = (
        f'<th scope="col"{_side(column)}>{words_of(column.title)}</th>' if column.title else "<td></td>"
        for column in table.columns
    )
    yield f"<tr>{''.join(titles)}</tr></thead>"


def _cells(columns: Sequence[Column], row: Sequence[TableCell], footnotes: Footnotes) -> Iterator[str]:
    for index, (column, cell) in enumerate(zip(columns, row, strict=True)):
        words = words_of(footnotes.words(cell))
        words = f'<span class="{cell.style.split()[-1]}">{words}</span>' if cell.style and words else words
        is_name = index == 0 and words
        yield f'<th scope="row">{words}</th>' if is_name else f"<td{_side(column)}>{words}</td>"


def _side(column: Column) -> str:
    return ' class="n"' if column.right else ' class="f"' if column.folds else ""
