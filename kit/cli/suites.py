"""`kit suites`: the suites that come with the kit."""

from __future__ import annotations

import click


@click.command
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def suites(*, as_json: bool) -> None:
    """List the built-in suites: their cells, what they compare, and about how long they take on two CPUs."""
    import msgspec

    from kit.report.quantity import about, counted
    from kit.report.run_plan import fits_words
    from kit.suites.estimate import estimate
    from kit.suites.plan import plan_cells, plan_groups
    from kit.suites.suite import builtin_suites, load_suite

    loaded = [load_suite(name) for name in builtin_suites()]
    if as_json:
        click.echo(msgspec.json.encode(loaded))
        return
    width = max(len(suite.name) for suite in loaded)
    for suite in loaded:
        cells = plan_cells(suite)
        groups = plan_groups(cells, suite.compared, suite.baseline)
        measure = suite.measure
        # Most machines have no energy sensor.
        steps = msgspec.structs.replace(measure.plan(), energy_s=0.0)
        took = estimate(cells, groups, measure.share, steps, measure.rounds)
        click.echo(
            f"{suite.name:<{width}} {suite.title}: {counted(len(cells), 'cell')} in {counted(len(groups), 'group')}, "
            f"comparing {', '.join(suite.compared)}, {counted(measure.rounds, 'round')}, "
            f"{about(took.seconds, is_least=took.is_least)}{fits_words(cells, steps)}"
        )
