"""`kit show`: one profile, in words."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kit.cli.profile_paths import ProfilePath


@click.command(short_help="Show one profile in words.")
@click.argument("profile", type=ProfilePath())
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, raw steps included.")
def show(*, profile: Path, as_json: bool) -> None:
    """Show machine, clock, sensors, phases and launches of PROFILE."""
    import msgspec

    from kit.profile.sidecar import attach_steps
    from kit.profile.step_archive import json_of_steps
    from kit.profile.store import read_profile
    from kit.report.ascii_json import ascii_json
    from kit.report.profile_text import render
    from kit.report.terminal import wants_color

    read = read_profile(profile)
    if as_json:
        attach_steps(profile, read)
        click.echo(ascii_json(msgspec.json.encode(read, enc_hook=json_of_steps)))
        return
    click.echo(render(read, color=wants_color(sys.stdout)).rstrip("\n"))
