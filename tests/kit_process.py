"""The `kit` of this checkout, in a process of its own or in this one."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from kit.cli import app

REPOSITORY = Path(__file__).parents[1]
START = (sys.executable, "-m", "kit")


def copy_kit(folder: Path) -> None:
    """Copy the kit into a folder. Bytecode stays: a test beside this one may be writing it, under a name that goes."""
    shutil.copytree(REPOSITORY / "kit", folder / "kit", ignore=shutil.ignore_patterns("__pycache__"))


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


def invoke(*words: object, folder: Path | None = None) -> Result:
    """Run the command in this process; its error is the result's `exception`."""
    with contextlib.chdir(folder or Path.cwd()):
        return CliRunner().invoke(app, [*map(str, words)], standalone_mode=False)
