"""What a user typed to come here, for advice that can be typed as it is."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from kit.environment import COMMAND


def run_command() -> str:
    """Return `kit run`, or what started this process in its place: KIT_COMMAND."""
    return os.environ.get(COMMAND) or "kit run"


def resuming(profile: Path | str, command: str | None = None) -> str:
    """Return the command that resumes an unfinished run, for the shell; `command`: in place of `run_command()`."""
    return f"{command or run_command()} --resume --out {shlex.quote(str(profile))}"
