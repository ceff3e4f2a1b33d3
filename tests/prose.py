"""Run proselint over Markdown without its code: `python tests/prose.py FILE.md|FOLDER…` prints what it finds.

`[tool.proselint]` of pyproject.toml switches checks off, each with its reason. proselint itself reads code as prose and
keeps its settings in JSON, which has no comments.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from proselint.checks import __register__
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).resolve().parents[1]
# Blocks of code, fenced or indented; inline code, comments, and the targets of links.
CODE = re.compile(
    r"^ *```.*?^ *```|^ {4,}(?![-*\d])[^\n]*|`+[^`]+`+|<!--.*?-->|(?<=\]\()[^)\s]+", re.DOTALL | re.MULTILINE
)
# A heading, a paragraph, a table: what a check may read as one text.
BLOCK = re.compile(r"(?:[^\n]+\n?)+")
# Replaces a character of code: it belongs to no word, so columns stay and no check sees a word.
BLANK = "§"


def prose(text: str) -> str:
    """Return Markdown with each character of its code replaced; lines and columns stay as they are."""
    return CODE.sub(lambda code: re.sub(r"[^\n]", BLANK, code[0]), text)


def findings(path: Path, checks: dict[str, bool]) -> list[str]:
    """Return `FILE:LINE:COLUMN: CHECK: MESSAGE` for each finding in a file."""
    text = prose(path.read_text(encoding="utf-8"))
    lines = []
    for block in BLOCK.finditer(text):
        before = text.count("\n", 0, block.start())
        results = LintFile(str(path), block[0]).lint({"max_errors": 1000, "checks": checks})
        lines += [
            f"{path}:{before + line}:{column}: {result.check_path}: {result.message}"
            for result, (line, column) in results
        ]
    return lines


def main(names: list[str]) -> int:
    """Print the findings of all files; return 1 if there are any."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["proselint"]
    # proselint takes the first name that fits a check: the specific ones come first.
    checks = settings["checks"] | DEFAULT["checks"] | settings["checks"]
    CheckRegistry().register_many(__register__)
    given = [Path(name) for name in names]
    files = [file for path in given for file in (sorted(path.rglob("*.md")) if path.is_dir() else [path])]
    lines = [line for file in files for line in findings(file, checks)]
    if lines:
        print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
