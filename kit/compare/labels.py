"""Short, distinct names for the profiles of one comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def distinct_labels(paths: Sequence[Path]) -> list[str]:
    """File names without their ending; with the folder where names collide, numbered where that collides too."""
    labels = [path.stem for path in paths]
    if len(set(labels)) < len(labels):
        labels = [f"{path.parent.name}/{path.stem}" if path.parent.name else path.stem for path in paths]
    seen: dict[str, int] = {}
    distinct = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        distinct.append(label if seen[label] == 1 else f"{label}#{seen[label]}")
    return distinct
