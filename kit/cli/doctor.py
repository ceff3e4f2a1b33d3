"""`kit doctor`: what this machine or container can and cannot measure, and what would mend it."""

from __future__ import annotations

import sys

import click


@click.command(short_help="Say what can and cannot be measured here, and why.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def doctor(*, as_json: bool) -> None:
    """Say which frameworks, data and sensors are here, and why others are not."""
    import msgspec

    from kit.engines.examine import examine
    from kit.report.examination_text import render
    from kit.report.terminal import wants_color

    examination = examine()
    if as_json:
        click.echo(msgspec.json.encode(examination).decode())
        return
    click.echo(render(examination, color=wants_color(sys.stdout)).rstrip("\n"))
