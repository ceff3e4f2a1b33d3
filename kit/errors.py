"""Errors that a user can cause and fix: one line that says what was wrong and what would be right."""

from kit.printable import cut_within, printable

# A line quotes what others wrote, which may be of any length. So much fills a screen, and holds any usual path.
LENGTH_MAX = 4_000
EXIT_BAD, EXIT_INTERRUPTED = 2, 130


class KitError(Exception):
    """Shown as its one line, without a traceback; the command ends with `exit_code`.

    The line may quote what others wrote, names in a profile and names of files: it is made printable and cut.
    """

    exit_code = EXIT_BAD

    def __init__(self, line: str) -> None:
        super().__init__(printable(cut_within(line, LENGTH_MAX)))
