"""`kit show`: one profile."""

from __future__ import annotations

from pathlib import Path

import click

from kit.cli.options import PROFILE, format_options, print_report


@click.command
@click.argument("profile", type=PROFILE)
@format_options
@click.option("--steps", is_flag=True, help="Print JSON with every raw step time, by launch.")
def show(*, profile: Path, format_name: str, steps: bool) -> None:
    """Show the machine, clock, sensors, phases and launches of PROFILE."""
    from kit.profile.steps import read_steps
    from kit.profile.store import read_profile
    from kit.report.profile import profile_report

    whole = read_profile(profile)
    if steps:
        raw = {launch: times.tolist() for launch, times in read_steps(profile, whole).items()}
        print_report(profile_report(whole, {"profile": whole, "steps_ns": raw}), "json")
    else:
        print_report(profile_report(whole), format_name)
