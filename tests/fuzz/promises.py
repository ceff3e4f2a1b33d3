"""What may come out of `kit`, whatever went in: checked by the property tests and by the fuzzer."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from xml.etree import ElementTree

from markdown_it import MarkdownIt

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
# What a line of ours opens; everything else would have been opened by a name.
OURS = {"inline", "text", "softbreak", "hardbreak", "heading", "paragraph", "bullet_list", "list_item"} | {
    "table", "thead", "tbody", "tr", "th", "td"
}  # fmt: skip
FORMULA = re.compile(r"[\s\"]*[=+\-@＝＋－＠]")  # noqa: RUF001 - they are the point
BAR = re.compile(r"(?<!\\)(?:\\\\)*\|")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")


class BrokenPromiseError(AssertionError):
    """Something came out that may not."""


def check_text(text: str) -> None:
    """Printable characters and line breaks only."""
    odd = {character for character in text if not character.isprintable() and character != "\n"}
    if odd:
        raise BrokenPromiseError(f"text with {sorted(map(ascii, odd))}")


def check_said(said: str, lines: int = 1) -> None:
    """At most so many lines, of printable characters."""
    check_text(said)
    if len(said.splitlines()) > lines:
        raise BrokenPromiseError(f"not one line: {said!r}")


def check_markdown(text: str) -> None:
    """Headings, lists and tables of ours, no links, images, code or HTML; a table's rows are as wide as its head."""
    check_text(text)
    widths: list[int] = []
    for token in MARKDOWN.parse(text):
        for part in (token, *(token.children or ())):
            kind = part.type.removesuffix("_open").removesuffix("_close")
            if kind not in OURS:
                raise BrokenPromiseError(f"Markdown with {part.type}: {part.content!r}")
        if token.type == "table_open":
            widths = []
        elif token.type == "tr_open":
            widths.append(0)
        elif token.type in ("th_open", "td_open"):
            widths[-1] += 1
        elif token.type == "table_close" and len(set(widths)) != 1:
            raise BrokenPromiseError(f"Markdown table with rows of {widths} cells")
    bars = 0
    for line in text.splitlines():
        before, bars = bars, len(BAR.findall(line)) if line.startswith("|") else 0
        if before and bars and bars != before:
            raise BrokenPromiseError(f"Markdown with a bar in a cell: {line!r}")
        if re.search(r"(?<!\\)://|www\.|mailto:|@", line, re.IGNORECASE):
            raise BrokenPromiseError(f"Markdown that GitHub makes a link or a mention of: {line!r}")


def check_csv(text: str) -> None:
    """As many cells in each row as in the first, one line each, and no formula, however lists are separated."""
    check_text(text)
    rows = list(csv.reader(io.StringIO(text)))
    if {len(row) for row in rows} - {len(rows[0])} or len(rows) != len(text.splitlines()):
        raise BrokenPromiseError(f"CSV with rows of {sorted({len(row) for row in rows})} cells")
    for separator in (",", ";", "\t"):
        for row in csv.reader(io.StringIO(text), delimiter=separator):
            for cell in row:
                if FORMULA.match(cell) and not NUMBER.fullmatch(cell):
                    raise BrokenPromiseError(f"CSV with a formula: {cell!r}")


def check_json(text: str) -> None:
    """JSON in printable ASCII, without NaN."""
    if re.search(r"[^\x20-\x7e\n]", text):
        raise BrokenPromiseError("JSON that could steer a terminal")
    json.loads(text, parse_constant=_refuse_constant)


def check_junit(text: str) -> None:
    """Well-formed XML of printable characters, also once its references are resolved."""
    check_text(text)
    for element in ElementTree.fromstring(text).iter():
        for value in (*element.attrib.values(), (element.text or "").strip(), (element.tail or "").strip()):
            check_text(value)


def _refuse_constant(name: str) -> None:
    raise BrokenPromiseError(f"JSON with {name}")


CHECKS: dict[str, Callable[[str], None]] = {
    "text": check_text,
    "markdown": check_markdown,
    "csv": check_csv,
    "json": check_json,
    "junit": check_junit,
}
