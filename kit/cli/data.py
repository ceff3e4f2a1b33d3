"""`kit data`: the data sets that are here; `kit data fetch` gets and checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kit.runner.examine import DataFinding

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")


@click.group(invoke_without_command=True)
@as_json_option
@click.pass_context
def data(context: click.Context, *, as_json: bool) -> None:
    """Show which data sets are here, and whether their checksums are right."""
    from kit.runner.examine import examine_data
    from kit.workloads.catalog import DATASETS

    context.obj = as_json
    if context.invoked_subcommand is None:
        _show([examine_data(name) for name in DATASETS], as_json=as_json)


@data.command
@click.argument("names", nargs=-1, metavar="[NAME]...")
@as_json_option
@click.pass_obj
def fetch(as_json_too: bool, names: tuple[str, ...], *, as_json: bool) -> None:
    """Download what is missing, of all or of those named, and check it."""
    from kit.runner.examine import fetch_data
    from kit.suites.suite import check_choice
    from kit.workloads.catalog import DATASETS

    for name in names:
        check_choice("data set", name, list(DATASETS))
    _show([fetch_data(name) for name in dict.fromkeys(names or DATASETS)], as_json=as_json or as_json_too)


def _show(found: list[DataFinding], *, as_json: bool) -> None:
    import msgspec

    from kit.report.machine import finding_lines

    click.echo(msgspec.json.encode(found) if as_json else "\n".join(finding_lines(found)))
