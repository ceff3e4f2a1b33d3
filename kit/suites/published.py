"""Where the figures are that a suite's document published: in a checkout, or where a wheel has put them."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDERS = (Path(__file__).parents[2] / "profiles" / "published", Path(sys.prefix, "share", "steadykit", "published"))


def published_file(suite: str) -> Path | None:
    """Return the published profile of a built-in suite; None where there is none."""
    return next((file for folder in FOLDERS if (file := folder / f"{suite}.json").is_file()), None)
