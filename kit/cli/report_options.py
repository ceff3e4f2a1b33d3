"""`--format` and `--json`, of every command that prints a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, TypeVar

import click

from kit.report.formats import FORMATS, USUAL, write
from kit.report.table import Report

F = TypeVar("F", bound=Callable[..., Any])


def format_options(command: F) -> F:
    """Return the command with both options, which give it `format_name`."""
    command = click.option("--json", "format_name", flag_value="json", help="Same as --format json.")(command)
    return click.option("--format", "format_name", type=click.Choice(FORMATS), default=USUAL, show_default=True)(
        command
    )


def print_report(report: Report, format_name: str = USUAL, stream: IO[str] | None = None) -> None:
    """Print the report to a stream, by default standard output."""
    click.echo(write(report, format_name, stream), file=stream, nl=False)
