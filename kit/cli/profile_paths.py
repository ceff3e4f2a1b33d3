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


class ProfilePath(click.ParamType[Path]):
    """A path; not an empty one, which a shell variable that is not set leaves, and which would mean this folder."""

    name = "path"

    def convert(self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Give the path; click.UsageError where there is none."""
        if value == "":
            self.fail("an empty name; give a profile", param, ctx)
        return Path(value)


def _expanded(given: Path) -> Iterator[Path]:
    if not given.is_dir():
        yield given
        return
    found = sorted(path for path in given.iterdir() if path.suffix == SUFFIX)
    if not found:
        raise click.UsageError(f"{given}: no profile in this folder: they end in {SUFFIX}")
    yield from found
