"""The `kit` command."""

from __future__ import annotations

import errno
import os
import sys

EXIT_BAD = 2
EXIT_INTERRUPTED = 130
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main() -> None:
    """Run the command and end the process with its exit code; what a user can cause is one line, never a traceback."""
    import click

    from kit.cli.app import app
    from kit.errors import KitError
    from kit.printable import printable_line

    try:
        code = app.main(prog_name="kit", standalone_mode=False)
        # A full disk under our output shows here, and not at exit.
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as wanted:
        click.echo(wanted.format_message())
        code = 0
    except click.ClickException as error:
        code = _failed(printable_line(error.format_message()), EXIT_BAD)
    except KitError as error:
        code = _failed(str(error), error.exit_code)
    except (click.exceptions.Abort, KeyboardInterrupt):
        code = EXIT_INTERRUPTED
    except OSError as error:
        code = _output_failed(error)
    sys.exit(code if isinstance(code, int) else 0)


def _failed(line: str, code: int) -> int:
    sys.stderr.write(f"kit: {line}\n")
    return code


def _output_failed(error: OSError) -> int:
    """Return the exit code where a file or our output cannot be written; a reader that has gone wanted no more."""
    # What is still buffered would fail again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return 1
    advice = "; make room, or write elsewhere" if error.errno in NO_ROOM else ""
    subject = error.filename or "input or output failed"
    from kit.printable import printable_line

    return _failed(printable_line(f"{subject}: {error.strerror or error}{advice}"), EXIT_BAD)
