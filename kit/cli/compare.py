"""`kit compare`: the cells of one profile, or several profiles, side by side, with verdicts."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from kit.cli.profiles import PROFILE, labels_of, profile_files

if TYPE_CHECKING:
    from kit.compare.rows import Comparison
    from kit.profile.schema import Profile
    from kit.stats.rounds import By

# Each with the file of `kit.report` that renders it; none: as it is.
FORMATS = {"text": "table", "markdown": "markdown", "csv": "csv", "json": None, "junit": "junit"}
AGAINST = "--against"
# Of more runs than these nobody looks at each one's phases and counters.
DETAILED_MAX = 20
# Rows that are named; of thousands every one may be slower.
NAMED_MAX = 20


class CompareCommand(click.Command):
    """`click.Command` in which an option takes every word up to the next option: shells expand ``after*.json``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return what is left over of `args`, as click does."""
        repeated, taking = [], False
        for word in args:
            taking = word == AGAINST or (taking and not word.startswith("-"))
            repeated += [AGAINST, word] if taking and word != AGAINST else [] if taking else [word]
        if AGAINST in args and AGAINST not in repeated:
            raise click.UsageError(f"{AGAINST} names no profile; give the later runs after it", ctx)
        return super().parse_args(ctx, repeated)


@click.command(cls=CompareCommand)
@click.argument("profiles", nargs=-1, required=True, type=PROFILE)
@click.option("--against", multiple=True, type=PROFILE, metavar="P…", help="Later runs; PROFILES are those before.")
@click.option("--baseline", metavar="NAME", help="Row (of one profile) or profile (of several) to compare with.")
@click.option("--format", "format_name", type=click.Choice(list(FORMATS)), default="text", show_default=True)
@click.option("--json", "format_name", flag_value="json", help="Same as --format json.")
@click.option("--wide", is_flag=True, help="Every column: intervals, p95, CPUs, phases, marks.")
@click.option(
    "--fail-if-slower",
    "allowed_pct",
    type=click.FloatRange(0),
    metavar="PCT",
    help="Exit 1 if a row is shown to be slower by more than PCT, 5 if that is not resolved.",
)
@click.option(
    "--by",
    type=click.Choice(["step", "latency"]),
    default="step",
    show_default=True,
    help="Judge by step time (whole time over steps), or by the median step that is waited for by itself.",
)
@click.option("--table", "table_name", metavar="SUITE", help="The table that SUITE answers.")
@click.option("--force", is_flag=True, help="Compare also what the gate would keep apart; its rows say so.")
@click.option("--why", is_flag=True, help="Explain what differs between runs.")
def compare(
    *,
    profiles: tuple[Path, ...],
    against: tuple[Path, ...],
    baseline: str | None,
    format_name: str,
    wide: bool,
    allowed_pct: float | None,
    by: By,
    table_name: str | None,
    force: bool,
    why: bool,
) -> int:
    """Compare PROFILES: of one, the cells of each group; of several, each cell with the same cell of the first.

    A folder stands for the profiles in it.
    """
    from kit.compare.gate import NotComparableError

    before, after = list(profile_files(profiles)), list(profile_files(against))
    if why and len(before) + len(after) == 1:
        raise click.UsageError("--why explains what differs between runs; give two profiles")
    if table_name is not None:
        if after or allowed_pct is not None or why or format_name == "junit":
            raise click.UsageError("--table draws one table; leave out --against, --why, --fail-if-slower and junit")
        click.echo(_table(table_name, before, format_name), nl=False)
        return 0
    try:
        comparison = _compared(before, after, baseline, by, force=force or why)
    except PublishedError as published:
        if after or allowed_pct is not None or why or format_name == "junit":
            raise click.UsageError(
                f"{published.label} was published, not measured: it is never judged; leave it out"
            ) from None
        click.echo(_table(published.suite, before, format_name), nl=False)
        return 0
    except NotComparableError as error:
        if format_name == "junit":
            from kit.report.junit import render_refusal

            click.echo(render_refusal(str(error)), nl=False)
        raise
    from kit.backends.catalog import CATALOG
    from kit.report.plain import ascii_json
    from kit.report.words import RenderOptions

    options = RenderOptions(
        titles={name: entry.title for name, entry in CATALOG.items()},
        wide=wide,
        allowed_pct=allowed_pct,
        stream=sys.stdout,
    )
    module = "why" if why and format_name == "text" else FORMATS[format_name]
    click.echo(
        import_module(f"kit.report.{module}").render(comparison, options) if module else ascii_json(comparison),
        nl=False,
    )
    return 0 if allowed_pct is None else _limited(comparison, allowed_pct)


def render_profile(path: Path, stream: IO[str]) -> str:
    """Return the table of one profile, as `kit compare` prints it to a stream."""
    import shlex

    from kit.backends.catalog import CATALOG
    from kit.report.table import render
    from kit.report.words import RenderOptions

    titles = {name: entry.title for name, entry in CATALOG.items()}
    comparison = _compared([path], [], None, "step", force=False)
    return render(comparison, RenderOptions(titles, stream=stream, file=shlex.quote(str(path))))


class PublishedError(Exception):
    """A profile was not measured: there is no verdict on it, only its suite's table."""

    def __init__(self, suite: str, label: str) -> None:
        super().__init__(suite)
        self.suite = suite
        self.label = label


def _table(name: str, paths: Sequence[Path], format_name: str) -> str:
    from kit.compare.suite_table import suite_table
    from kit.profile.store import read_profile
    from kit.report.suite_table import render
    from kit.suites.suite import load_suite, suites_with_a_table

    suite = load_suite(name)
    if suite.table is None:
        known = ", ".join(suites_with_a_table())
        raise click.UsageError(f"suite {name} has no table of its own; choose from {known}, or leave out --table")
    profiles = [(label, read_profile(path)) for label, path in zip(labels_of(paths), paths, strict=True)]
    table = suite_table(suite.title, suite.table.rows, suite.table.figures, profiles)
    if not any(one.value is not None for row in table.values for own in row for one in own.values()):
        raise click.UsageError(f"nothing of the table of {name} is in these profiles; measure it: kit run {name}")
    return render(table, format_name, sys.stdout)


def _compared(
    before: Sequence[Path], after: Sequence[Path], baseline: str | None, by: By, *, force: bool
) -> Comparison:
    from kit.workloads.parity import PARITY_TOLERANCE

    paths = [*before, *after]
    labels = labels_of(paths)
    if len(paths) == 1:
        from kit.audit.finding import audit
        from kit.compare.within import compare_within

        profile = _measured(paths[0])
        return compare_within(
            labels[0], profile, baseline=baseline, findings=audit(profile), by=by, parity_tolerance=PARITY_TOLERANCE
        )
    from kit.compare.across import compare_runs
    from kit.compare.runs import reduce_run

    # A thousand profiles are millions of objects without a cycle among them: not to look for one halves the time.
    gc.disable()
    details = len(paths) <= DETAILED_MAX
    runs = [reduce_run(label, _measured(path), by, details=details) for label, path in zip(labels, paths, strict=True)]
    first, later = runs[: len(before)], runs[len(before) :]
    return compare_runs(first, later, baseline=baseline, force=force, by=by, parity_tolerance=PARITY_TOLERANCE)


def _measured(path: Path) -> Profile:
    from kit.profile.store import read_profile

    profile = read_profile(path)
    if not profile.measured:
        raise PublishedError(profile.suite.name, str(path))
    return profile


def _limited(comparison: Comparison, allowed_pct: float) -> int:
    """Say on standard error which rows are shown to be slower and which are not resolved; return the exit code."""
    from kit.compare.regression import limit_slow_downs
    from kit.report.plain import one_line

    limit = limit_slow_downs(comparison, allowed_pct)
    lines = [f"slower by more than {allowed_pct:g} %: {row}" for row in limit.slower]
    lines += [f"not resolved against {allowed_pct:g} %: {row}" for row in limit.unresolved]
    if not lines and limit.not_slower:
        passed = "1 row passes" if len(limit.not_slower) == 1 else f"{len(limit.not_slower):,} rows pass"
        lines = [f"{passed}: not more than {allowed_pct:g} % slower (95 %)"]
    for line in lines[:NAMED_MAX] or ["nothing was compared: each group has one cell; give two cells or two runs"]:
        click.echo(one_line(f"kit: {line}"), err=True)
    if len(lines) > NAMED_MAX:
        click.echo(f"kit: … and {len(lines) - NAMED_MAX:,} more", err=True)
    return limit.exit_code
