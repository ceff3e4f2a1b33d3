"""`kit suites`: the suites that come with the kit."""

from __future__ import annotations

import click


@click.command(short_help="List the built-in suites.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def suites(*, as_json: bool) -> None:
    """List the built-in suites and how many cells and launches each has."""
    import msgspec

    from kit.compare.counted import counted
    from kit.suites.plan import plan_cells
    from kit.suites.suite import builtin_suites, load_suite

    loaded = [load_suite(name) for name in builtin_suites()]
    if as_json:
        click.echo(msgspec.json.encode(loaded).decode())
        return
    for suite in loaded:
        cells = counted(len(plan_cells(suite.cells)), "cell")
        launches = counted(suite.measure.launches, "launch")
        click.echo(f"{suite.name:<10} {suite.title}: {cells}, {launches} each")
