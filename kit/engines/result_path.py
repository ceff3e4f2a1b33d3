"""Where a run's profile goes when another run's has come to lie in its place."""

from __future__ import annotations

from pathlib import Path

from kit.errors import KitError
from kit.profile.store import read_profile


def result_path(path: Path, run_id: str) -> Path:
    """`path`, or beside it with the run's id in its name: the profile of another run is not overwritten.

    Two runs meet in one place when the journal of the first was removed while it measured.
    """
    try:
        there = read_profile(path)
    except KitError:
        return path
    return path if there.id == run_id else path.with_name(f"{path.stem}-{run_id[:8]}{path.suffix}")
