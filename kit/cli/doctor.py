"""`kit doctor`: what this machine or container can and cannot measure, and what would mend it."""

from __future__ import annotations

import sys

import click

from kit.cli.finite_range import FiniteRange

EXIT_FAILED = 3
OBSERVER_S = 20.0
# Imports, warm-up and steady steps of the launch.
AROUND_S = 10.0


@click.command(short_help="Say what can and cannot be measured here, and why.")
@click.option("--observer", is_flag=True, help="Measure what the sampler costs the steps it watches, and nothing else.")
@click.option(
    "--seconds",
    type=FiniteRange(min=0, min_open=True),
    metavar="S",
    help=f"Of --observer: longer is narrower.  [default: {OBSERVER_S:g}]",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def doctor(*, observer: bool, seconds: float | None, as_json: bool) -> int:
    """Say which frameworks, data and sensors are here, and why others are not."""
    if observer:
        return _observe(OBSERVER_S if seconds is None else seconds, as_json=as_json)
    if seconds is not None:
        raise click.UsageError("--seconds is for --observer; give both, or neither")
    import msgspec

    from kit.engines.examine import examine
    from kit.report.examination_text import render
    from kit.report.terminal import wants_color

    examination = examine()
    if as_json:
        click.echo(msgspec.json.encode(examination).decode())
    else:
        click.echo(render(examination, color=wants_color(sys.stdout)).rstrip("\n"))
    return 0


def _observe(seconds: float, *, as_json: bool) -> int:
    import msgspec

    from kit.engines.interrupts import interrupts_held_back
    from kit.engines.observe import observe, request
    from kit.report.observer_text import render
    from kit.report.terminal import wants_color

    asked = request(seconds)
    click.echo(f"kit: observing {asked.cell.key} for about {seconds + AROUND_S:.0f} s", err=True)
    with interrupts_held_back():
        observed = observe(asked)
        # Within: an interrupt that comes when it has been measured does not take it away.
        if as_json:
            click.echo(msgspec.json.encode(observed).decode())
        else:
            click.echo(render(observed, color=wants_color(sys.stdout)).rstrip("\n"))
    return EXIT_FAILED if observed.overhead.ratio is None else 0
