"""Errors that a user can cause and fix: one line that says what was wrong and what would be right."""

from kit.printable import printable


class KitError(Exception):
    """Shown as its one line, without a traceback; the command ends with `exit_code`.

    The line may quote what others wrote, names in a profile and names of files: it is made printable.
    """

    exit_code = 2

    def __init__(self, line: str) -> None:
        super().__init__(printable(line))
