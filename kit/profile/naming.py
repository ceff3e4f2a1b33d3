"""Where a run's profile goes when the user names a folder, or nothing."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from kit.errors import KitError


class OutputError(KitError):
    """The profile cannot go where it was asked to."""


def profile_path(out: str | None, suite: str, run_id: str, created: datetime) -> Path:
    """The file to write: `out` itself, or ``<suite>-<UTC time>-<id>.json`` in the folder `out` (default: here).

    Raises:
        OutputError: the file is there already, or its folder is not.
    """
    name = f"{suite}-{created:%Y%m%dT%H%M%SZ}-{run_id[:8]}.json"
    path = Path(out) if out else Path(name)
    if out and (path.is_dir() or out.endswith("/")):
        path /= name
    if path.exists():
        raise OutputError(f"{path}: is there already; choose another --out, measured data is not overwritten")
    if not path.parent.is_dir():
        raise OutputError(f"{path.parent}: no such folder; create it, or choose another --out")
    return path
