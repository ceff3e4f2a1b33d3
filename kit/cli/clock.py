"""`kit clock`: how good this machine's clock is, measured now."""

from __future__ import annotations

import click


@click.command(short_help="Measure and print the clock certificate.")
@click.option(
    "--source", default="monotonic_raw", show_default=True, metavar="NAME", help="monotonic_raw, tsc, cntvct or auto."
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def clock(*, source: str, as_json: bool) -> None:
    """Measure and print the clock certificate that every profile carries."""
    import msgspec

    from kit.clock import CLOCKS, calibrate, certify, choose_source
    from kit.report.profile_machine import clock_section
    from kit.suites.plan import check_choice

    check_choice("clock source", source, CLOCKS)
    chosen, _ = choose_source(source)  # type: ignore[arg-type]
    certificate = certify(chosen, calibrate(chosen), calibrate(chosen))
    click.echo(msgspec.json.encode(certificate).decode() if as_json else "\n".join(clock_section(certificate)))
