"""`kit suites`: the suites that come with the kit."""

from __future__ import annotations

import click

from kit.cli.options import listing_format_options, print_report


@click.command
@listing_format_options
def suites(*, format_name: str) -> None:
    """List the built-in suites: their cells, what they compare, and how long they take on two CPUs."""
    from kit.report.run_plan import suites_report
    from kit.runner.time_left import estimate
    from kit.suites.plan import plan_cells, plan_groups
    from kit.suites.suite import builtin_suites, load_suite

    listed = []
    for suite in map(load_suite, builtin_suites()):
        cells, measure = plan_cells(suite), suite.measure
        groups = plan_groups(cells, suite.compared, suite.baseline)
        time = estimate(cells, groups, measure.share, measure.plan(), measure.rounds)
        listed.append((suite, cells, len(groups), time))
    print_report(suites_report(listed), format_name)
