"""`kit data`: the data sets that are here; `kit data fetch` gets and checks them."""

from __future__ import annotations

import click

from kit.cli.options import listing_format_options, print_report


@click.group(invoke_without_command=True)
@listing_format_options
@click.pass_context
def data(context: click.Context, *, format_name: str) -> None:
    """Show which data sets are on this machine, and check their checksums."""
    from kit.report.machine import data_report
    from kit.runner.examine import examine_data
    from kit.workloads.catalog import DATASETS

    context.obj = format_name
    if context.invoked_subcommand is None:
        print_report(data_report([examine_data(name) for name in DATASETS]), format_name)


@data.command
@click.argument("names", nargs=-1, metavar="[NAME]...")
@listing_format_options
@click.pass_obj
def fetch(format_of_group: str, names: tuple[str, ...], *, format_name: str) -> None:
    """Download the missing data sets, all or those named, and check them."""
    from kit.report.machine import data_report
    from kit.runner.examine import fetch_data
    from kit.suites.suite import check_choice
    from kit.workloads.catalog import DATASETS

    for name in names:
        check_choice("data set", name, list(DATASETS))
    findings = [fetch_data(name) for name in dict.fromkeys(names or DATASETS)]
    print_report(data_report(findings), format_of_group if format_name == "text" else format_name)
