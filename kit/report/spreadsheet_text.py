"""Text for a cell of CSV, made harmless for the spreadsheets that open it.

They run a cell as a formula by how it begins (OWASP, "CSV Injection"), whether it is quoted or not.
"""

from __future__ import annotations

import re

from kit.report.plain import one_line

# Some East Asian settings take the full-width forms for the same. (`one_line` has left no tab and no line break.)
FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001 - they are the point
# Where lists are separated by semicolons, a spreadsheet opens another cell there, within quotes of ours or not.
_NEW_CELL = re.compile(rf"(;[\s\"']*)(?=[{re.escape(''.join(FORMULA_STARTS))}])")


def harmless_cell(text: str) -> str:
    """One printable line; an apostrophe stands before whatever would begin a formula."""
    line = _NEW_CELL.sub(r"\1'", one_line(text))
    return f"'{line}" if line.lstrip("\"' ").startswith(FORMULA_STARTS) else line
