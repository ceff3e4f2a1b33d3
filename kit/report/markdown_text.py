"""Text for Markdown (CommonMark, and what GitHub adds to it), made harmless: it is shown as it is, and does nothing."""

from __future__ import annotations

import re

from kit.report.plain import LENGTH_MAX, one_line

# Characters that open emphasis, code, links, HTML, tables, headings, strikethrough or mathematics.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$])")
# At the beginning of a line: lists, rules and underlined headings.
_LINE_START = re.compile(r"^([-+=]|\d{1,9}(?=[.)]))")
# GitHub makes links of bare addresses.
_ADDRESS = re.compile(r"(://|(?<=mailto):|(?<=xmpp):|(?<=www)\.)", re.IGNORECASE)
# GitHub writes to whoever is named after an @, escaped or not; the full-width one looks the same and names nobody.
_AT = str.maketrans({"@": "＠"})  # noqa: RUF001 - that is the point


def escape(text: str, length_max: int = LENGTH_MAX) -> str:
    """One harmless line: no layout, no links, no mentions, no HTML."""
    line = _SPECIAL.sub(r"\\\1", one_line(text, length_max).replace("&", "&amp;")).translate(_AT)
    return _LINE_START.sub(_escaped_start, _ADDRESS.sub(r"\\\1", line))


def _escaped_start(match: re.Match[str]) -> str:
    start = match[0]
    return f"{start}\\" if start.isdigit() else f"\\{start}"
