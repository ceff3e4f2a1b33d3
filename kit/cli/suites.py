"""`kit suites`: the suites that come with the kit."""

from __future__ import annotations

import click


@click.command
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def suites(*, as_json: bool) -> None:
    """List the built-in suites: their cells, what they compare, and how many rounds they take."""
    import msgspec

    from kit.report.quantity import counted
    from kit.suites.plan import plan_cells, plan_groups
    from kit.suites.suite import builtin_suites, load_suite

    loaded = [load_suite(name) for name in builtin_suites()]
    if as_json:
        click.echo(msgspec.json.encode(loaded))
        return
    width = max(len(suite.name) for suite in loaded)
    for suite in loaded:
        cells = plan_cells(suite)
        groups = counted(len(plan_groups(cells, suite.compared)), "group")
        click.echo(
            f"{suite.name:<{width}} {suite.title}: {counted(len(cells), 'cell')} in {groups}, "
            f"comparing {', '.join(suite.compared)}, {counted(suite.measure.rounds, 'round')}"
        )
