"""`kit compare`: the cells of one profile, or several profiles, with verdicts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kit.cli.options import (
    METER,
    PROFILES,
    Price,
    echo_first,
    format_options,
    in_processes,
    labels_of,
    price_options,
    print_report,
    profile_files,
    read_meter,
)
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.audit.finding import Finding
    from kit.compare.axes import Axes
    from kit.compare.comparison import Comparison
    from kit.compare.meter import Meter
    from kit.compare.sample import Run
    from kit.compare.suite_table import SuiteTable
    from kit.profile.schema import Profile
    from kit.report.table import Report
    from kit.suites.suite import Suite

AGAINST = "--against"
# Phases and counters of each run are read only up to this many runs.
DETAILED_MAX = 20
# At most this many slower rows are named.
NAMED_MAX = 20


class AxisNames(click.ParamType[tuple[str, ...]]):
    """Names of axes, separated by commas."""

    name = "axes"

    def convert(self, value: object, _param: click.Parameter | None, _ctx: click.Context | None) -> tuple[str, ...]:
        """Return the names."""
        return value if isinstance(value, tuple) else tuple(name for name in str(value).split(",") if name)


class CompareCommand(click.Command):
    """`click.Command` in which an option takes every word up to the next option: shells expand ``after*.json``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return what is left over of `args`, as click does."""
        repeated, taking = [], False
        for word in args:
            taking = word == AGAINST or (taking and not word.startswith("-"))
            repeated += [AGAINST, word] if taking and word != AGAINST else [] if taking else [word]
        if AGAINST in args and AGAINST not in repeated:
            raise click.UsageError(f"{AGAINST} names no profile; follow it with the later runs", ctx)
        return super().parse_args(ctx, repeated)


NAMES = AxisNames()


@click.command(cls=CompareCommand)
@click.argument("profiles", nargs=-1, required=True, type=PROFILES)
@click.option("--against", multiple=True, type=PROFILES, metavar="P…", help="Compare these later runs with PROFILES.")
@click.option("--baseline", metavar="NAME", help="Compare with this row, profile or platform.")
@format_options
@click.option("--wide", is_flag=True, help="Show every column and every note.")
@click.option(
    "--fail-if-slower",
    "allowed_pct",
    type=click.FloatRange(0),
    metavar="PCT",
    help="Exit 0 if no row is more than PCT slower, 1 if one is, 5 if unresolved, 4 if there is nothing to compare.",
)
@click.option("--metric", metavar="NAME", help="Compare this metric: a column of CSV. Default: step.")
@click.option("--by", type=click.Choice(["step", "latency"]), help="Same as --metric step or --metric latency.")
@click.option("--rows", type=NAMES, default=(), metavar="A,B", help="Make a row for each value of these axes.")
@click.option("--columns", type=NAMES, default=(), metavar="A,B", help="Compare the values of these axes in columns.")
@click.option("--split", type=NAMES, default=(), metavar="A,B", help="Make a table for each value of these axes.")
@click.option("--filter", "terms", metavar="TEXT", help="Keep these cells: 'backend=torch,jax batch>=64'.")
@click.option("--all-cycles", is_flag=True, help="Also use the cycles that other programs disturbed.")
@click.option("--table", "table_name", metavar="SUITE", help="Print the table that SUITE defines.")
@METER
@price_options
@click.option("--force", is_flag=True, help="Compare incompatible cells, too; their rows say (forced).")
@click.option("--why", is_flag=True, help="Explain the numbers: findings of one run, differences between several.")
def compare(
    *,
    profiles: tuple[Path, ...],
    against: tuple[Path, ...],
    baseline: str | None,
    format_name: str,
    wide: bool,
    allowed_pct: float | None,
    metric: str | None,
    by: str | None,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    split: tuple[str, ...],
    terms: str | None,
    all_cycles: bool,
    table_name: str | None,
    meter_file: Path | None,
    price_hour: tuple[Price, ...],
    price_kwh: tuple[Price, ...],
    force: bool,
    why: bool,
) -> int:
    """Compare the cells of one profile, or each cell of several profiles with the same cell of the first.

    Profiles of several machines or devices become columns, one for each platform. A folder stands for its profiles.
    """
    from kit.compare.axes import Axes
    from kit.compare.prices import Prices, priced
    from kit.report.comparison import comparison_report, why_report
    from kit.report.table import Case, Report

    before, after = list(profile_files(profiles)), list(profile_files(against))
    prices, judged = Prices(dict(price_hour), dict(price_kwh)), _judged(metric, by, allowed_pct)
    axes, is_plain = Axes(split, rows, columns), not (metric or by or terms or split or rows or columns)
    is_judged = bool(after or allowed_pct is not None or why)
    if table_name is not None:
        if is_judged or any(prices) or all_cycles or meter_file is not None or not is_plain:
            others = "--against, --why, --meter, --metric, axes, prices, --all-cycles and --fail-if-slower"
            raise click.UsageError(f"--table draws one table; leave out {others}")
        print_report(_suite_report(table_name, before), format_name)
        return 0
    try:
        meter = read_meter(meter_file)
        comparison = _compared(
            before, after, baseline, judged, force=force, explain=why, meter=meter, all_cycles=all_cycles, axes=axes,
            terms=terms, is_table=format_name in ("text", "markdown") and not wide and not prices.kwh,
        )  # fmt: skip
        if judged != "step_ns":
            _check_measured(comparison)
        if meter is not None:
            comparison.notes.append(meter.note())
        if any(prices):
            priced(comparison, prices)
    except PublishedError as published:
        if is_judged:
            raise
        print_report(_suite_report(published.suite, before), format_name)
        return 0
    except KitError as error:
        if format_name == "junit":
            # A CI server that is given an empty file reports that, and not why.
            case = Case("comparable", "kit compare", "error", str(error), "not comparable")
            print_report(Report("kit compare", [], [], cases=[case]), format_name)
        raise
    if why:
        report = why_report(comparison, allowed_pct)
    else:
        # With these options the next command is the same one with a further option.
        is_plain = is_plain and not (after or before[1:] or baseline or all_cycles or meter_file or any(prices))
        file = before[0] if is_plain else None
        report = comparison_report(comparison, _titles(comparison), wide=wide, allowed_pct=allowed_pct, file=file)
    print_report(report, format_name)
    return 0 if allowed_pct is None else _limited(comparison, allowed_pct)


def _judged(metric: str | None, by: str | None, allowed_pct: float | None) -> str:
    """Return the name of the metric that is compared."""
    from kit.compare.metrics import metric_named

    if metric and by:
        raise click.UsageError("--by and --metric choose the same thing; give one")
    judged = metric_named(metric or by or "step")
    if allowed_pct is not None and judged.compare != "ratio":
        raise click.UsageError(f"--fail-if-slower allows a percentage; {judged.name} is not compared by its ratio")
    return judged.name


def run_comparison(path: Path) -> Comparison:
    """Return the comparison of one profile's cells."""
    return _compared([path], [], None, "step_ns")


def profile_comparison(path: Path) -> Report:
    """Return the table of one profile, as `kit compare` prints it."""
    from kit.report.comparison import comparison_report

    comparison = run_comparison(path)
    return comparison_report(comparison, _titles(comparison), file=path)


def run_table(path: Path) -> Report:
    """Return the last table of a run: its suite's own beside published figures, else that of `kit compare`."""
    from kit.profile.store import read_profile
    from kit.report.suite_table import suite_report
    from kit.suites.plan import is_whole
    from kit.suites.request import RunRequest, requested_suite
    from kit.suites.suite import published_file, suites_with_a_table

    profile = read_profile(path)
    name = profile.suite.name.removesuffix("-quick")
    if name not in suites_with_a_table():
        return profile_comparison(path)
    suite = requested_suite(RunRequest(suite=name, quick=name != profile.suite.name))
    document = published_file(name) if is_whole(suite, [result.cell for result in profile.cells]) else None
    published = [(name, read_profile(document))] if document is not None else []
    file = shlex.quote(str(path))
    hint = f"verdicts: kit compare {file} · every launch: kit show {file}"
    return suite_report(_suite_table(suite, [(path.stem, profile), *published]), hint)


def framework_titles(used: Iterable[str]) -> dict[str, str]:
    """Return each backend as people write it; of other distributions only where one of those used is no own one."""
    from kit import backends
    from kit.backends.entry import BackendEntry
    from kit.workloads.installed import discover

    known = discover(backends, BackendEntry, "about")
    if not known.keys() >= set(used):
        from kit.backends.catalog import CATALOG

        known = CATALOG
    return {name: entry.title for name, entry in known.items()}


def _titles(comparison: Comparison) -> dict[str, str]:
    return framework_titles(row.cell.backend for row in comparison.rows)


class PublishedError(KitError):
    """A profile was not measured: it gets no verdict, only its suite's table."""

    def __init__(self, suite: str, label: str) -> None:
        super().__init__(f"{label} was published, not measured, and is never judged; leave it out")
        self.suite, self._label = suite, label

    def __reduce__(self) -> tuple[type[PublishedError], tuple[str, str]]:
        return type(self), (self.suite, self._label)


def _suite_report(name: str, paths: Sequence[Path]) -> Report:
    from kit.profile.store import read_profile
    from kit.report.suite_table import suite_report
    from kit.suites.suite import load_suite

    profiles = [(label, read_profile(path)) for label, path in zip(labels_of(paths), paths, strict=True)]
    table = _suite_table(load_suite(name), profiles)
    if not any(figure.value is not None for row in table.values for column in row for figure in column.values()):
        raise click.UsageError(f"no profile has a figure of {name}'s table; measure the suite: kit run {name}")
    return suite_report(table)


def _suite_table(suite: Suite, profiles: Sequence[tuple[str, Profile]]) -> SuiteTable:
    from kit.compare.suite_table import suite_table
    from kit.suites.suite import suites_with_a_table

    if suite.table is None:
        names = ", ".join(suites_with_a_table())
        raise click.UsageError(f"suite {suite.name} defines no table; choose from {names}, or leave out --table")
    return suite_table(suite.title, suite.table.rows, suite.table.figures, profiles)


def _compared(
    before: Sequence[Path],
    after: Sequence[Path],
    baseline: str | None,
    by: str,
    *,
    force: bool = False,
    explain: bool = False,
    meter: Meter | None = None,
    all_cycles: bool = False,
    axes: Axes | None = None,
    terms: str | None = None,
    is_table: bool = False,
) -> Comparison:
    from kit.compare.axes import filter_runs
    from kit.compare.compare import OF_A_TABLE, OF_MANY_RUNS, compare

    paths, is_asked = [*before, *after], axes is not None and any(axes)
    if is_asked and after:
        raise click.UsageError("--against makes sides of its own; with --rows, --columns or --split leave it out")
    names = None
    if not is_asked and len(paths) > DETAILED_MAX:
        names = OF_A_TABLE if is_table else OF_MANY_RUNS
    read = partial(_read_run, by=by, all_cycles=all_cycles, names=names, meter=meter)
    files = list(zip(labels_of(paths), paths, strict=True))
    # A meter counts what was used of it, and launches take longer to hand over than to read.
    runs = in_processes(read, files, in_one=names is None or meter is not None)
    if terms is not None:
        filter_runs(runs, terms)
    findings: Sequence[Finding] = ()
    if len(paths) == 1 and not is_asked:
        from kit.audit.audit import findings_of

        findings = findings_of(runs[0])
    first, later = runs[: len(before)], runs[len(before) :]
    return compare(first, later, axes=axes, baseline=baseline, force=force, explain=explain, findings=findings)


def _check_measured(comparison: Comparison) -> None:
    """Raise KitError where nothing has the metric that was asked for, with the reason that is known."""
    from kit.compare.metrics import short_name
    from kit.report.notes import note_line

    if any(row.judged is not None for row in comparison.rows):
        return
    notes = [note for note in comparison.notes if note.what.code.startswith("energy_")]
    why = note_line(notes[0]) if notes and "energy" in comparison.by else "no launch recorded it"
    raise KitError(f"{short_name(comparison.by)} was not measured: {why}")


def _read_run(
    file: tuple[str, Path], *, by: str, all_cycles: bool, names: Sequence[str] | None, meter: Meter | None
) -> Run:
    """Return the run of a label and a profile that was measured; of many runs with these metrics alone."""
    from kit.compare.compare import read_reduced
    from kit.compare.sample import read_run
    from kit.profile.store import read_profile

    label, path = file
    profile = read_profile(path)
    if not profile.measured:
        raise PublishedError(profile.suite.name, str(path))
    profile = profile if meter is None else meter.added_to(label, profile)
    if names is None:
        return read_run(label, profile, by, all_cycles=all_cycles)
    return read_reduced(label, profile, by, all_cycles=all_cycles, names=names)


def _limited(comparison: Comparison, allowed_pct: float) -> int:
    """Say on standard error which rows are shown to be slower and which are not resolved; return the exit code."""
    from kit.compare.fail_if_slower import limit_slow_downs

    limit = limit_slow_downs(comparison, allowed_pct)
    lines = [f"slower by more than {allowed_pct:g} %: {row}" for row in limit.slower]
    for row in limit.unresolved:
        more = limit.more_rounds.get(row)
        remedy = "" if more is None else f"; about {more:,} more round{'s' if more > 1 else ''} would decide"
        lines.append(f"not resolved against {allowed_pct:g} %: {row}{remedy}")
    if not lines and limit.not_slower:
        passed = "1 row passes" if len(limit.not_slower) == 1 else f"{len(limit.not_slower):,} rows pass"
        lines = [f"{passed}: not more than {allowed_pct:g} % slower (95 %)"]
    echo_first(lines or ["nothing was compared: each group has one cell; give two cells or two runs"], NAMED_MAX)
    return limit.exit_code
