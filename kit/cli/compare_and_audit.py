"""Verbs that judge profiles: `kit compare` with verdicts on differences, `kit audit` with what is wrong in them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from kit.cli.options import (
    PROFILES,
    F,
    echo_first,
    format_options,
    in_processes,
    labels_of,
    option_from,
    options_from,
    print_report,
    profile_files,
    read_meter,
    without_collector,
)
from kit.errors import KitError
from kit.option import TypedRequest, flag, option, several
from kit.report.formats import USUAL
from kit.suites.run_request import ALLOWED_MAX_PCT

if TYPE_CHECKING:
    from kit.audit.finding import Finding, Severity
    from kit.audit.rule import Rule
    from kit.compare.fail_if_slower import Limit
    from kit.compare.meter import Meter
    from kit.compare.rows import Comparison
    from kit.compare.runs import Run
    from kit.compare.suite_table import SuiteTable
    from kit.profile.schema import Profile
    from kit.report.report_table import Report

AGAINST = "--against"
# Phases and counters of each run are read only up to this many runs.
DETAILED_MAX = 20
# At most this many slower rows are named.
NAMED_MAX = 20
EXIT_UNREADABLE = 2
# Findings of `kit audit` from this severity on end it with an exit code.
FAIL_ON = "warning"
EACH = "PRICE, or NAME=PRICE for one side, profile or device (repeatable)."


def axes_given(names: str) -> tuple[str, ...]:
    """Return the names of axes, which commas separate."""
    return tuple(name for name in names.split(",") if name)


def prices_given(texts: Sequence[str]) -> dict[str, float]:
    """Return each price by whose it is, empty for everybody's; a name may have a `=`. ValueError where one is none."""
    prices = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            prices[name] = float(number)
        except ValueError:
            prices[name] = math.nan
        if not 0 <= prices[name] < math.inf:
            raise ValueError(f"{text!r} is not a price; give a number of 0 or more, or NAME=NUMBER for one platform")
    return prices


class CompareRequest(TypedRequest):
    """What `kit compare` is asked for."""

    profiles: tuple[Path, ...] = several("PROFILES")
    # The later runs, where there are two sides.
    against: tuple[Path, ...] = several(AGAINST, "Compare these later runs with PROFILES.", "P…")
    baseline: str | None = option("--baseline", "Compare with this row, profile or platform.", "NAME")
    format_name: str = option("--format", usual=USUAL)
    wide: bool = flag("--wide", "Show every column and every note.")
    allowed_pct: float | None = option(
        "--fail-if-slower",
        "Exit 0 if no row is more than PCT slower, 1 if one is, 5 if unresolved, 4 if there is nothing to compare.",
        "PCT",
        least=0,
        most=ALLOWED_MAX_PCT,
    )
    metric: str | None = option(
        "--metric", "Compare this metric, such as latency or compile. Default: step, or figure.", "NAME"
    )
    by: str | None = option("--by", "Same as --metric step or --metric latency.", choices=("step", "latency"))
    rows: tuple[str, ...] = several(
        "--rows", "Make a row for each value of these axes.", "A,B", read=axes_given, is_one_text=True
    )
    columns: tuple[str, ...] = several(
        "--columns", "Compare the values of these axes in columns.", "A,B", read=axes_given, is_one_text=True
    )
    split: tuple[str, ...] = several(
        "--split", "Make a table for each value of these axes.", "A,B", read=axes_given, is_one_text=True
    )
    terms: str | None = option("--filter", "Keep these cells: 'backend=torch,jax batch>=64'.", "TEXT")
    all_cycles: bool = flag("--all-cycles", "Also use the cycles that other programs disturbed.")
    table_name: str | None = option("--table", "Print the table that SUITE defines.", "SUITE")
    meter_files: tuple[Path, ...] = several(
        "--meter", "Read joules from a log of a meter, nvidia-smi, turbostat … (repeatable).", "FILE", read=tuple
    )
    meter_zone: str = option(
        "--meter-zone", "Zone of a log's times, such as Europe/Berlin; run: as the machine had it.", "ZONE", usual=""
    )
    meter_columns: tuple[str, ...] = several(
        "--meter-column",
        "Take this column, GPU or rail of a log; several are added up (repeatable).",
        "NAME",
        read=tuple,
    )
    price_hour: Mapping[str, float] = option(
        "--price-hour", f"Set the price of an hour: {EACH}", "PRICE", read=prices_given, usual=MappingProxyType({})
    )
    price_kwh: Mapping[str, float] = option(
        "--price-kwh", f"Set the price of a kWh: {EACH}", "PRICE", read=prices_given, usual=MappingProxyType({})
    )
    force: bool = flag("--force", "Compare incompatible cells, too; their rows say (forced).")
    why: bool = flag("--why", "Explain the numbers: findings of one run, differences between several.")

    @property
    def axes(self) -> tuple[tuple[str, ...], ...]:
        """Axes of tables, rows and columns; empty where they are to be the usual ones."""
        return self.split, self.rows, self.columns


def meter_options(command: F) -> F:
    """Return the command with the options of a meter's logs."""
    for name in ("meter_columns", "meter_zone", "meter_files"):
        command = option_from(CompareRequest, name)(command)
    return command


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


@click.command(cls=CompareCommand)
@options_from(CompareRequest)
@without_collector
def compare(**options: Any) -> int:  # noqa: ANN401 - the fields of a request
    """Compare the cells of one profile, or each cell of several profiles with the same cell of the first.

    Profiles of several machines or devices become columns, one for each platform. A folder stands for its profiles.
    """
    from kit.compare.compare import OF_MANY_RUNS
    from kit.compare.metrics import metric_named
    from kit.compare.prices import Prices, priced
    from kit.report.comparison_report import comparison_report, why_report
    from kit.report.report_table import Case, Report

    options |= {name: tuple(profile_files(options[name])) for name in ("profiles", "against")}
    request, allowed_pct = CompareRequest(**options), options["allowed_pct"]
    if request.metric and request.by:
        raise click.UsageError("--by and --metric choose the same thing; give one")
    named = request.metric or request.by
    judged = metric_named(named) if named else None
    if allowed_pct is not None and judged is not None and judged.compare != "ratio":
        raise click.UsageError(f"--fail-if-slower allows a percentage; {judged.name} is not compared by its ratio")
    prices = Prices(request.price_hour, request.price_kwh)
    is_judged = bool(request.against or allowed_pct is not None or request.why)
    is_changed = any(
        (*request.axes, request.metric, request.by, request.terms, request.all_cycles, request.meter_files, *prices)
    )
    if request.table_name is not None:
        if is_judged or is_changed:
            others = "--against, --why, --meter, --metric, axes, prices, --all-cycles and --fail-if-slower"
            raise click.UsageError(f"--table draws one table; leave out {others}")
        print_report(_suite_report(request.table_name, request.profiles), request.format_name)
        return 0
    try:
        is_table = request.format_name in ("text", "markdown") and not request.wide and not request.price_kwh
        comparison = compared(request, judged.name if judged else "", () if is_table else OF_MANY_RUNS)
        if judged is not None and judged.name != "step_ns":
            check_measured(comparison)
        if any(prices):
            priced(comparison, prices)
    except PublishedError as published:
        from kit.suites.suite import builtin_suites

        # A suite that a profile names is never looked up among files.
        if is_judged or published.suite not in builtin_suites():
            raise
        print_report(_suite_report(published.suite, request.profiles), request.format_name)
        return 0
    except KitError as error:
        if request.format_name == "junit":
            # A CI server that is given an empty file reports that, and not why.
            case = Case("comparable", "kit compare", "error", str(error), "not comparable")
            print_report(Report("kit compare", [], [], cases=[case]), request.format_name)
        raise
    if request.why:
        report = why_report(comparison, titles_of(comparison), allowed_pct, request.profiles[0])
    else:
        # With other options the next command is not the same one with a further option.
        is_plain = not (is_changed or request.against or request.profiles[1:] or request.baseline)
        file, titles = request.profiles[0] if is_plain else None, titles_of(comparison)
        report = comparison_report(comparison, titles, wide=request.wide, allowed_pct=allowed_pct, file=file)
    print_report(report, request.format_name)
    return 0 if allowed_pct is None else say_limit(limit_of(comparison, allowed_pct), allowed_pct)


def run_comparison(path: Path) -> Comparison:
    """Return the comparison of one profile's cells."""
    return compared(CompareRequest(profiles=(path,)))


def profile_comparison(path: Path) -> Report:
    """Return the table of one profile, as `kit compare` prints it."""
    from kit.report.comparison_report import comparison_report

    comparison = run_comparison(path)
    return comparison_report(comparison, titles_of(comparison), file=path)


def run_table(path: Path) -> Report:
    """Return the last table of a run: its suite's own beside published figures, else that of `kit compare`."""
    from kit.profile.store import read_profile
    from kit.report.suite_report import suite_report

    table = table_with_published([(path.stem, read_profile(path))])
    if table is None:
        return profile_comparison(path)
    file = shlex.quote(str(path))
    return suite_report(table, f"verdicts: kit compare {file} · every launch: kit show {file}")


def table_with_published(profiles: Sequence[tuple[str, Profile]]) -> SuiteTable | None:
    """Return the table that the suite of these profiles defines, with published figures where one is whole."""
    from kit.compare.suite_table import suite_table
    from kit.profile.store import read_profile
    from kit.suites.plan import is_whole, requested_suite
    from kit.suites.run_request import RunRequest
    from kit.suites.suite import builtin_suites, published_file

    used = profiles[0][1].suite.name
    name = used.removesuffix("-quick")
    quick = RunRequest(suite=name, quick=name != used)
    suite = requested_suite(quick) if name in builtin_suites() else None
    if suite is None or suite.table is None:
        return None
    are_whole = any(is_whole(suite, [result.cell for result in profile.cells]) for _, profile in profiles)
    document = published_file(name) if are_whole else None
    beside = [(name, read_profile(document))] if document is not None else []
    return suite_table(suite.title, suite.table.rows, suite.table.figures, [*profiles, *beside])


def framework_titles(used: Iterable[str]) -> dict[str, str]:
    """Return each backend as people write it; of other distributions only where one of those used is no own one."""
    from kit.backends.entry import kit_entries

    known = kit_entries()
    if not known.keys() >= set(used):
        from kit.backends.backend_catalog import CATALOG

        known = CATALOG
    return {name: entry.title for name, entry in known.items()}


def titles_of(comparison: Comparison) -> dict[str, str]:
    """Return the frameworks of a comparison as people write them."""
    return framework_titles(row.cell.backend for row in comparison.rows)


class PublishedError(KitError):
    """A profile was not measured: it gets no verdict, only its suite's table."""

    suite = ""


def _suite_report(name: str, paths: Sequence[Path]) -> Report:
    """Return the table that a suite defines, of these profiles."""
    from kit.compare.suite_table import suite_table
    from kit.profile.store import read_profile
    from kit.report.suite_report import suite_report
    from kit.suites.suite import builtin_suites, load_suite

    suite = load_suite(name)
    if suite.table is None:
        names = ", ".join(name for name in builtin_suites() if load_suite(name).table is not None)
        raise click.UsageError(f"suite {suite.name} defines no table; choose from {names}, or leave out --table")
    profiles = [(label, read_profile(path)) for label, path in zip(labels_of(paths), paths, strict=True)]
    table = suite_table(suite.title, suite.table.rows, suite.table.figures, profiles)
    if not any(figure.value is not None for row in table.values for column in row for figure in column.values()):
        raise click.UsageError(f"no profile has a figure of {name}'s table; measure the suite: kit run {name}")
    return suite_report(table)


def compared(request: CompareRequest, judged: str = "", metrics: Sequence[str] = ()) -> Comparison:
    """Return the comparison by one metric.

    Args:
        request: what is compared with what.
        judged: the metric that has a verdict; empty: the usual one.
        metrics: that are read of each run where there are many; empty: those that a table shows.
    """
    from kit.compare.axes import TableAxes, filter_runs
    from kit.compare.compare import OF_A_TABLE, WITHOUT_REACH, compare

    paths, has_axes = [*request.profiles, *request.against], any(request.axes)
    names: Sequence[str] | None = None
    if has_axes and request.against:
        raise click.UsageError("--against makes sides of its own; with --rows, --columns or --split leave it out")
    if not has_axes and len(paths) > DETAILED_MAX:
        names = metrics or OF_A_TABLE
    meter = read_meter(vars(request))
    read = partial(_read_run, by=judged, all_cycles=request.all_cycles, names=names, meter=meter)
    files = list(zip(labels_of(paths), paths, strict=True))
    # A meter counts what was used of it, and launches take longer to hand over than to read.
    runs = in_processes(read, files, in_one=names is None or meter is not None)
    if request.terms is not None:
        filter_runs(runs, request.terms)
    findings: Sequence[Finding] = ()
    if len(paths) == 1 and not has_axes:
        from kit.audit.audit import findings_of

        findings = findings_of(runs[0])
    first, later = runs[: len(request.profiles)], runs[len(request.profiles) :]
    comparison = compare(
        first, later, axes=TableAxes(*request.axes), baseline=request.baseline, force=request.force,
        explain=request.why, findings=findings, names=None if metrics else WITHOUT_REACH,
    )  # fmt: skip
    if meter is not None:
        comparison.notes += meter.notes()
    return comparison


def check_measured(comparison: Comparison) -> None:
    """Raise KitError where nothing has the requested metric, with the reason that is known."""
    from kit.compare.metrics import short_name
    from kit.report.headline_and_notes import note_line

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
    from kit.compare.notes import read_run
    from kit.profile.store import read_profile

    label, path = file
    profile = read_profile(path)
    if not profile.measured:
        published = PublishedError(f"{path} was published, not measured, and is never judged; leave it out")
        published.suite = profile.suite.name
        raise published
    profile = profile if meter is None else meter.replaces_joules_of(label, profile)
    if names is None:
        return read_run(label, profile, by, all_cycles=all_cycles)
    return read_reduced(label, profile, by, all_cycles=all_cycles, names=names)


def limit_of(comparison: Comparison, allowed_pct: float) -> Limit:
    """Return which rows are shown to be slower by more than allowed, and which are not."""
    from kit.compare.fail_if_slower import limit_slow_downs

    return limit_slow_downs(comparison, allowed_pct)


def say_limit(limit: Limit, allowed_pct: float) -> int:
    """Say on standard error which rows are shown to be slower and which are not resolved; return the exit code."""

    def in_runs(row: str) -> str:
        return f" in {limit.slower_in[row]} of {RUNS_OF_A_GATE} runs" if row in limit.slower_in else ""

    from kit.compare.fail_if_slower import RUNS_OF_A_GATE

    lines = [f"slower by more than {allowed_pct:g} %{in_runs(row)}: {row}" for row in limit.slower]
    for kind, rows in limit.kept_apart.items():
        lines += [f"not compared ({kind.replace('_', ' ')}): {row}; see --why" for row in rows]
    for row in limit.unresolved:
        more = limit.more_rounds.get(row)
        remedy = "" if more is None else f"; about {more:,} more round{'s' if more > 1 else ''} would decide"
        counted = f", slower{in_runs(row)}" if row in limit.slower_in else ""
        lines.append(f"not resolved against {allowed_pct:g} %{counted}: {row}{remedy}")
    for row in (row for row, count in limit.slower_in.items() if count and row in limit.not_slower):
        lines.append(f"passes, slower by more than {allowed_pct:g} %{in_runs(row)}: {row}")
    if not lines and limit.not_slower:
        passed = "1 row passes" if len(limit.not_slower) == 1 else f"{len(limit.not_slower):,} rows pass"
        # The table's words may say "unresolved" of the same row.
        lines = [
            f"{passed}: shown not to be more than {allowed_pct:g} % slower (one-sided, 95 %); a verdict of the table "
            "is about any difference (two-sided)"
        ]
    echo_first(lines or ["nothing was compared: each group has one cell; give two cells or two runs"], NAMED_MAX)
    return limit.exit_code


@click.command
@click.argument("profiles", nargs=-1, required=True, type=PROFILES)
@format_options
@click.option(
    "--fail-on",
    type=click.Choice(["note", "warning", "bad"]),
    default=FAIL_ON,
    show_default=True,
    help="Exit 1 if a finding is at least this severe; else 5 if a check could not run; else 0.",
)
@meter_options
@click.option("--rule", "names", multiple=True, metavar="NAME,…", help="Run only this rule (repeatable).")
@click.option("--without", multiple=True, metavar="NAME,…", help="Skip this rule (repeatable).")
@without_collector
def audit(
    *,
    profiles: tuple[Path, ...],
    format_name: str,
    fail_on: Severity,
    names: tuple[str, ...],
    without: tuple[str, ...],
    **chosen: Any,  # noqa: ANN401 - the options of a meter
) -> int:
    """Check PROFILES for problems of power, utilization, fairness and the record.

    A folder stands for the profiles in it. Power caps of GPUs are also compared between profiles.
    https://github.com/steadykit/steadykit/blob/main/docs/reference/audit/index.md explains each rule.
    """
    import msgspec

    from kit.audit.audit import audit_together
    from kit.audit.finding import Audit, exit_code
    from kit.audit.subject import MeasuredRun
    from kit.profile.schema import Profile
    from kit.report.audit_report import audit_report

    rules = _chosen(names, without)
    paths = list(profile_files(profiles))
    meter = read_meter(chosen)
    files = list(zip(labels_of(paths), paths, strict=True))
    # Readings of a meter would be handed to each process, and what was read of them not back.
    encoded = in_processes(partial(_audited, rules=rules, meter=meter), files, in_one=meter is not None)
    answers = [msgspec.msgpack.decode(answer, type=tuple[Profile | None, Audit]) for answer in encoded]
    answers.sort(key=lambda answer: answer[0] is None)
    runs = [MeasuredRun(part.profiles[0].label, profile) for profile, part in answers if profile is not None]
    if not runs:
        raise KitError(answers[0][1].profiles[0].error)
    result = audit_together([part for _, part in answers], runs, rules)
    options = [("--rule", name) for name in names] + [("--without", name) for name in without]
    options += [("--meter", str(file)) for file in chosen["meter_files"]]
    options += [("--meter-zone", chosen["meter_zone"])] if chosen["meter_zone"] else []
    options += [("--meter-column", name) for name in chosen["meter_columns"]]
    options += [("--fail-on", fail_on)] if fail_on != FAIL_ON else []
    command = shlex.join(["kit", "audit", *map(str, profiles), *(word for option in options for word in option)])
    named = {label: shlex.quote(str(path)) for label, path in files}
    print_report(audit_report(result, runs, fail_on, command, named), format_name)
    return EXIT_UNREADABLE if len(runs) < len(answers) else exit_code(result, fail_on)


def _audited(file: tuple[str, Path], rules: Sequence[Rule], meter: Meter | None) -> bytes:
    """Return as much of one file as rules on several runs and reports take, and what the rules say of it.

    They are null and the reason where it cannot be audited. In MessagePack: pickling takes four times as long.
    """
    import msgspec

    from kit.audit.audit import audit_run
    from kit.audit.finding import Audit, AuditedProfile
    from kit.audit.subject import MeasuredRun
    from kit.profile.store import read_profile

    label, path = file
    try:
        profile = read_profile(path)
        if not profile.measured:
            raise KitError(f"{path}: its numbers were published, not measured; there is nothing to audit")
        if meter is not None:
            profile = meter.added_to(label, profile)
    except KitError as error:
        unread = AuditedProfile(label=label, error=str(error))
        return msgspec.msgpack.encode((None, Audit(profiles=[unread], findings=[], not_checked=[], rules=[])))
    cells = [msgspec.structs.replace(result, launches=[]) for result in profile.cells]
    small = msgspec.structs.replace(profile, cells=cells, sensors=[])
    return msgspec.msgpack.encode((small, audit_run(MeasuredRun(label, profile), rules)))


def _chosen(names: Sequence[str], without: Sequence[str]) -> list[Rule]:
    """Return the rules of these names, written with hyphens or underscores; all where none is given; less others."""
    from kit.audit.rule import all_rules
    from kit.suites.suite import check_choice

    known = {rule.name.replace("_", "-"): rule for rule in all_rules()}
    wanted, unwanted = (
        [name.strip().replace("_", "-") for word in words for name in word.split(",")] for words in (names, without)
    )
    for name in (*wanted, *unwanted):
        check_choice("rule", name, list(known))
    chosen = [known[name] for name in dict.fromkeys(wanted or known) if name not in unwanted]
    if not chosen:
        raise click.UsageError("--without leaves no rule; leave one of its names out")
    return chosen
