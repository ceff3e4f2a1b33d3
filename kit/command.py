"""What a user typed to come here, for advice that can be typed as it is."""

import os


def run_command() -> str:
    """Return `kit run`, or what started this process in its place: KIT_COMMAND."""
    return os.environ.get("KIT_COMMAND") or "kit run"
