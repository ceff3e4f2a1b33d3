"""`kit clock`: how good this machine's clock is, measured now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kit.profile.clock import ClockChoice

SOURCES = ("auto", "monotonic_raw", "tsc", "cntvct")


@click.command
@click.option("--source", type=click.Choice(SOURCES), default="monotonic_raw", show_default=True, help="What to read.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def clock(*, source: ClockChoice, as_json: bool) -> None:
    """Measure and print the clock certificate that every profile carries."""
    import msgspec

    from kit.clock import calibrate, certify, choose_source
    from kit.report.machine import clock_lines

    chosen, _ = choose_source(source)
    certificate = certify(chosen, calibrate(chosen), calibrate(chosen))
    click.echo(msgspec.json.encode(certificate) if as_json else "\n".join(clock_lines(certificate)))
