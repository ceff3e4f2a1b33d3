"""Files planted below a folder that stands in for a machine's root."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def plant(root: Path, files: Mapping[str, str]) -> Path:
    """Write each text at its path below `root`; the root."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root
