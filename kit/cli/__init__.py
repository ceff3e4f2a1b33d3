"""The `kit` command."""

from __future__ import annotations

import contextlib
import errno
import os
import sys

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main() -> None:
    """Run the command and end the process with its exit code; what a user can cause is one line, never a traceback."""
    from kit.cli.interrupted import ended_by_interrupts

    with ended_by_interrupts():
        _main()


def _main() -> None:
    import click

    from kit.cli.app import app
    from kit.cli.streams import protect
    from kit.cli.terminal_size import drop_odd_sizes
    from kit.errors import KitError
    from kit.printable import printable, printable_line

    protect()
    drop_odd_sizes()
    try:
        code = app.main(prog_name="kit", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        click.echo(help_wanted.format_message())
        sys.exit(0)
    except click.ClickException as error:
        click.echo(f"kit: {printable_line(error.format_message())}", err=True)
        sys.exit(2)
    except KitError as error:
        _say(f"kit: {error}")
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        sys.exit(130)
    except OSError as error:
        # A full disk under our output: what is still buffered would fail again at exit.
        _discard_output()
        subject = error.filename or "input or output failed"
        advice = "; make room, or write elsewhere" if error.errno in NO_ROOM else ""
        _say(printable(f"kit: {subject}: {error.strerror or error}{advice}"))
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _discard_output() -> None:
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
