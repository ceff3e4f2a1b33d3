"""`kit doctor`: what this machine or container can and cannot measure, and what would mend it."""

from __future__ import annotations

import sys

import click


@click.command
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def doctor(*, as_json: bool) -> None:
    """Say which frameworks, data, clocks and sensors are here, why others are not, and what would mend it."""
    import msgspec

    from kit.report.machine import render_examination
    from kit.runner.examine import examine

    click.echo("asking the frameworks, which takes some seconds …", err=True)
    found = examine()
    click.echo(msgspec.json.encode(found) if as_json else render_examination(found, sys.stdout), nl=as_json)
