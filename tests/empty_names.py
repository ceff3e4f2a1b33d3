"""Refuse variables whose names say nothing: `python tests/empty_names.py FOLDER…` prints where they are bound."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

EMPTY = {"one", "own", "found", "theirs", "ours", "told", "said"}


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of every variable and parameter that the code binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs) and node.name:
            yield node.lineno, node.name


def main(folders: list[str]) -> int:
    """Print the bindings of empty names under the folders; return 1 if there are any."""
    files = sorted(path for folder in folders for path in Path(folder).rglob("*.py"))
    lines = [
        f"{path}:{line}: a variable is called {name!r}; call it what it holds"
        for path in files
        for line, name in bound_names(ast.parse(path.read_text(encoding="utf-8")))
        if name in EMPTY
    ]
    if lines:
        print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
