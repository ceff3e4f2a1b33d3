"""`kit show`: one profile, and its raw steps."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kit.cli.options import PROFILE, listing_format_options, print_report


@click.command
@click.argument("profile", type=PROFILE)
@listing_format_options
@click.option("--steps", is_flag=True, help="Print every raw step time, with --format csv or json.")
def show(*, profile: Path, format_name: str, steps: bool) -> None:
    """Show the machine, clock, sensors, phases and launches of PROFILE."""
    from kit.profile.store import read_profile, read_steps
    from kit.report.profile import profile_report, steps_document, write_steps_csv

    if steps and format_name not in ("csv", "json"):
        raise click.UsageError(f"--steps does not print {format_name}; give --format csv or --format json")
    whole = read_profile(profile)
    if not steps:
        print_report(profile_report(whole), format_name)
    elif format_name == "csv":
        write_steps_csv(whole, read_steps(profile, whole), sys.stdout)
    else:
        document = steps_document(whole, read_steps(profile, whole))
        print_report(profile_report(whole)._replace(document=document), format_name)
