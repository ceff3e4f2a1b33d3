"""Where a run's profile goes when the user names a file, a folder, or nothing."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from kit.errors import KitError
from kit.files import name_of
from kit.profile.unfinished import folder_of, unfinished_refusal


def profile_path(out: str | None, suite: str, run_id: str, created: str, *, replace: bool = False) -> Path:
    """Return the file to write: `out` itself, or ``<suite>-<UTC time>-<id>.json`` in the folder `out` (default: here).

    With `replace` a file may be there: it is replaced when the first profile of the run is written.

    Raises:
        KitError: the file is there already, an unfinished run is, or its folder is not.
    """
    name = f"{name_of(suite)}-{datetime.fromisoformat(created):%Y%m%dT%H%M%SZ}-{run_id[:8]}.json"
    path = Path(out) if out else Path(name)
    try:
        if out and (path.is_dir() or out.endswith("/")):
            path /= name
        if path.name in ("", ".."):
            raise KitError(f"{path} is a folder; name a file, such as --out run.json")
        if os.path.lexists(folder_of(path)):
            raise unfinished_refusal(path)
        if os.path.lexists(path) and not replace:
            raise KitError(f"{path}: this file exists; choose another --out (`kit run --force` replaces it)")
        if not path.parent.is_dir():
            raise KitError(f"{path.parent}: the folder does not exist; create it, or choose another --out")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise KitError(f"{path} cannot be created: {why}; choose another --out") from None
    return path
