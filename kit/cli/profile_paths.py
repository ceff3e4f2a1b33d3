"""Paths of profiles as a user gives them: files, and folders of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

SUFFIX = ".json"


def profile_paths(given: Iterable[Path]) -> list[Path]:
    """The files given, and of each folder given its ``*.json`` in order of their names.

    Raises:
        click.UsageError: a folder holds none.
    """
    return [path for one in given for path in _expanded(one)]


def _expanded(given: Path) -> Iterator[Path]:
    if not given.is_dir():
        yield given
        return
    found = sorted(path for path in given.iterdir() if path.suffix == SUFFIX)
    if not found:
        raise click.UsageError(f"{given}: no profile in this folder: they end in {SUFFIX}")
    yield from found
