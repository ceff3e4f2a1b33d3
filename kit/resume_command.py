"""What a user typed to come here, for advice that can be typed as it is."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from kit.environment import COMMAND


def resuming(profile: Path | str, command: str | None = None) -> str:
    """Return the command that resumes an unfinished run, for the shell.

    `command` is what the run was started with; null: KIT_COMMAND, else `kit run`.
    """
    return f"{command or os.environ.get(COMMAND) or 'kit run'} --resume --out {shlex.quote(str(profile))}"
