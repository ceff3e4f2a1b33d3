"""Short, distinct names for the profiles of one comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kit.printable import printable_line


def distinct_labels(paths: Sequence[Path]) -> list[str]:
    """File names without their ending; with the folder where names collide, numbered where that collides too.

    They can be printed whatever the files are called, and encoded: bytes that are no UTF-8 are replaced in them.
    """
    labels = [_label(path.stem) for path in paths]
    if len(set(labels)) < len(labels):
        labels = [_label(f"{path.parent.name}/{path.stem}" if path.parent.name else path.stem) for path in paths]
    taken = set(labels)
    used: dict[str, int] = {}
    distinct = []
    for label in labels:
        used[label] = number = used.get(label, 0) + 1
        shown = label
        while number > 1 and (shown := f"{label}#{number}") in taken:
            used[label] = number = number + 1
        taken.add(shown)
        distinct.append(shown)
    return distinct


def _label(name: str) -> str:
    return printable_line(name) or "(nameless)"
