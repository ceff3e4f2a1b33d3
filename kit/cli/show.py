"""`kit show`: one profile, in words."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command
@click.argument("profile", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--steps", is_flag=True, help="Print as JSON, with every raw step time, by launch.")
def show(*, profile: Path, as_json: bool, steps: bool) -> None:
    """Show machine, clock, sensors, phases and launches of PROFILE."""
    from kit.profile.steps import read_steps
    from kit.profile.store import read_profile
    from kit.report.plain import ascii_json
    from kit.report.show import render_profile
    from kit.workloads.parity import PARITY_TOLERANCE

    read = read_profile(profile)
    if steps:
        raw = {launch: times.tolist() for launch, times in read_steps(profile, read).items()}
        shown = ascii_json({"profile": read, "steps_ns": raw})
    elif as_json:
        shown = ascii_json(read)
    else:
        shown = render_profile(read, sys.stdout, parity_tolerance=PARITY_TOLERANCE)
    click.echo(shown, nl=False)
