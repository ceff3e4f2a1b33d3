"""Errors that a user can cause and mend: one line that says what was wrong and what would be right."""


class KitError(Exception):
    """Shown as its one line, without a traceback; the command ends with `exit_code`."""

    exit_code = 2
