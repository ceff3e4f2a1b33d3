"""The `kit` of this checkout in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


START = (sys.executable, "-m", "kit")


def kit(
    folder: Path, *words: object, under=(), start=START, timeout_s=600, **environment: str
) -> subprocess.CompletedProcess:
    """Run the command in a folder. `under`: what starts it; `environment` is added to this process'."""
    return subprocess.run(
        [*under, *start, *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
