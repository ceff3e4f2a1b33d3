"""`kit clock`: how good this machine's clock is, measured now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kit.cli.options import CLOCK_SOURCE, listing_format_options, print_report

if TYPE_CHECKING:
    from kit.profile.clock import ClockChoice


@click.command
@click.option("--source", type=CLOCK_SOURCE, default="monotonic_raw", show_default=True, help="Measure this clock.")
@listing_format_options
def clock(*, source: ClockChoice, format_name: str) -> None:
    """Measure this machine's clock and print the certificate that every profile contains."""
    from kit.clock import calibrate, certify, choose_source
    from kit.report.machine import clock_report

    chosen, _ = choose_source(source)
    print_report(clock_report(certify(chosen, calibrate(chosen), calibrate(chosen))), format_name)
