"""Profiles as verbs take them: files, folders of them, and what each is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

PROFILE = click.Path(exists=True, path_type=Path)


def profile_files(given: Iterable[Path]) -> Iterator[Path]:
    """Yield the files given, and of each folder its profiles in order of their names."""
    for path in given:
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not files:
            raise click.UsageError(f"{path}: no profile in this folder: they end in .json")
        yield from files


def labels_of(paths: Sequence[Path]) -> list[str]:
    """Return file names without their ending; with the folder where names collide, numbered where that does, too."""
    from kit.printable import printable_line

    labels = [path.stem for path in paths]
    if len(set(labels)) < len(labels):
        labels = [f"{path.absolute().parent.name}/{path.stem}" for path in paths]
    labels = [printable_line(label) for label in labels]
    before = [labels[:place].count(label) for place, label in enumerate(labels)]
    return [f"{label}#{count + 1}" if count else label for label, count in zip(labels, before, strict=True)]
