"""Verbs that list what is here: `clock`, `data`, `doctor`, `suites`, and `show` for one profile."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kit.cli.options import CLOCK_SOURCE, PROFILE, listing_format_options, print_report

if TYPE_CHECKING:
    from kit.profile.instruments import ClockChoice


@click.command
@click.option("--source", type=CLOCK_SOURCE, default="monotonic_raw", show_default=True, help="Measure this clock.")
@listing_format_options
def clock(*, source: ClockChoice, format_name: str) -> None:
    """Measure this machine's clock and print the certificate that every profile contains."""
    from kit.clock import calibrate, certify, choose_source
    from kit.report.machine_report import clock_report

    chosen, _ = choose_source(source)
    print_report(clock_report(certify(chosen, calibrate(chosen), calibrate(chosen))), format_name)


@click.group(invoke_without_command=True)
@listing_format_options
@click.pass_context
def data(context: click.Context, *, format_name: str) -> None:
    """Show which data sets are on this machine, and check their checksums."""
    from kit.report.machine_report import data_report
    from kit.runner.examine import examine_data
    from kit.workloads.workload_catalog import DATASETS

    context.obj = format_name
    if context.invoked_subcommand is None:
        print_report(data_report([examine_data(name) for name in DATASETS]), format_name)


@data.command
@click.argument("names", nargs=-1, metavar="[NAME]...")
@listing_format_options
@click.pass_obj
def fetch(group_format: str, names: tuple[str, ...], *, format_name: str) -> None:
    """Download the missing data sets, all or those named, and check them."""
    from kit.report.machine_report import data_report
    from kit.runner.examine import fetch_data
    from kit.suites.suite import check_choice
    from kit.workloads.workload_catalog import DATASETS

    for name in names:
        check_choice("data set", name, list(DATASETS))
    findings = [fetch_data(name) for name in dict.fromkeys(names or DATASETS)]
    print_report(data_report(findings), group_format if format_name == "text" else format_name)


@click.command
@listing_format_options
def doctor(*, format_name: str) -> None:
    """Report which frameworks, data, clocks and sensors this machine has, why others are missing, and what helps."""
    from kit.report.machine_report import examination_report
    from kit.runner.examine import examine

    click.echo("loading the frameworks takes some seconds …", err=True)
    print_report(examination_report(examine()), format_name)


@click.command
@click.argument("profile", type=PROFILE)
@listing_format_options
@click.option("--steps", is_flag=True, help="Print every raw step time, with --format csv or json.")
def show(*, profile: Path, format_name: str, steps: bool) -> None:
    """Show the machine, clock, sensors, phases and launches of PROFILE."""
    from kit.profile.store import read_profile, read_steps
    from kit.report.profile_report import profile_report, steps_document, write_steps_csv

    if steps and format_name not in ("csv", "json"):
        raise click.UsageError(f"--steps does not print {format_name}; give --format csv or --format json")
    whole = read_profile(profile)
    if not steps:
        print_report(profile_report(whole), format_name)
    elif format_name == "csv":
        write_steps_csv(whole, read_steps(profile, whole), sys.stdout)
    else:
        document = steps_document(whole, read_steps(profile, whole))
        print_report(profile_report(whole)._replace(document=document), format_name)


@click.command
@listing_format_options
def suites(*, format_name: str) -> None:
    """List the built-in suites: their cells, what they compare, and how long they take on two CPUs."""
    from kit.report.plan_report import suites_report
    from kit.runner.time_left import estimate
    from kit.suites.groups import plan_groups
    from kit.suites.plan import plan_cells, requested_suite
    from kit.suites.run_request import RunRequest
    from kit.suites.suite import builtin_suites

    listed = []
    for suite in (requested_suite(RunRequest(suite=name)) for name in builtin_suites()):
        cells, measure = plan_cells(suite), suite.measure
        groups = plan_groups(cells, suite.compared, suite.baseline, suite.also_compare)
        time = estimate(cells, groups, measure.share, measure.plan(), measure.rounds)
        listed.append((suite, cells, len(groups), time))
    print_report(suites_report(listed), format_name)
