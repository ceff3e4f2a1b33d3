"""`kit doctor`: what this machine or container can and cannot measure, and what would change that."""

from __future__ import annotations

import click

from kit.cli.options import listing_format_options, print_report


@click.command
@listing_format_options
def doctor(*, format_name: str) -> None:
    """Report which frameworks, data, clocks and sensors this machine has, why others are missing, and what helps."""
    from kit.report.machine import examination_report
    from kit.runner.examine import examine

    click.echo("loading the frameworks takes some seconds …", err=True)
    print_report(examination_report(examine()), format_name)
