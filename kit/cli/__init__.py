"""The `kit` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command and end the process with its exit code; what a user can cause is one line, never a traceback."""
    import click

    from kit.cli.app import app
    from kit.errors import KitError

    try:
        code = app.main(prog_name="kit", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        click.echo(help_wanted.format_message())
        sys.exit(0)
    except click.ClickException as error:
        click.echo(f"kit: {' '.join(error.format_message().split())}", err=True)
        sys.exit(2)
    except KitError as error:
        click.echo(f"kit: {error}", err=True)
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`kit show … | head`); nothing is left to tell it.
        sys.stderr.close()
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)
