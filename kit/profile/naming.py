"""Where a run's profile goes when the user names a folder, or nothing."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path

from kit.errors import KitError
from kit.profile.journal import journal_path
from kit.profile.sidecar import sidecar_path, sidecars_beside

# A suite may be somebody else's file. In its name nothing may lead out of the folder, hide the profile or look like an
# option, and the time and the run's id after it must fit.
_UNFIT = re.compile(r"[^\w.-]+|^[.-]+", re.ASCII)
_SUITE_MAX = 60


class OutputError(KitError):
    """The profile cannot go where it was asked to."""


def profile_path(out: str | None, suite: str, run_id: str, created: datetime) -> Path:
    """The file to write: `out` itself, or ``<suite>-<UTC time>-<id>.json`` in the folder `out` (default: here).

    Raises:
        OutputError: the file, its journal or its sidecar is there already, its folder is not, or its name is too long.
    """
    name = f"{_fit(suite)}-{created:%Y%m%dT%H%M%SZ}-{_fit(run_id[:8])}.json"
    path = Path(out) if out else Path(name)
    if out and (os.path.isdir(out) or out.endswith("/")):  # noqa: PTH112 - Path.is_dir raises on a name too long
        path /= name
    if _is_there(journal_path(path)):
        raise OutputError(f"{path}: an interrupted run: go on with `kit run --resume --out {path}`")
    # No sidecar is called so, but one may be as long.
    for file in (path, sidecar_path(path, "-" * 64), *sidecars_beside(path)):
        if _is_there(file):
            raise OutputError(f"{file}: is there already; choose another --out, measured data is not overwritten")
    if not path.parent.is_dir():
        raise OutputError(f"{path.parent}: no such folder; create it, or choose another --out")
    return path


def _fit(name: str) -> str:
    return _UNFIT.sub("_", name)[:_SUITE_MAX] or "_"


def _is_there(file: Path) -> bool:
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise OutputError(f"{file}: cannot be created: {error.strerror}; choose another --out") from None
    return True
