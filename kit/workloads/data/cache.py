"""Where data sets are kept: `KIT_DATA` if it is set, else this user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def is_chosen() -> bool:
    """Whether the user named the folder."""
    return bool(os.environ.get("KIT_DATA"))


def data_folder() -> Path:
    """The folder that holds one folder a data set. It may be missing, or read-only with the files already in it."""
    chosen = os.environ.get("KIT_DATA")
    return Path(chosen) if chosen else platformdirs.user_cache_path("steadykit")
