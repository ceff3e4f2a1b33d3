"""`kit compare`: profiles side by side, with verdicts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kit.cli.finite_range import FiniteRange
from kit.cli.profile_paths import ProfilePath, profile_paths
from kit.cli.uncollected import uncollected

if TYPE_CHECKING:
    from kit.compare.rows import Comparison

EXIT_SLOWER = 1
# Slower rows that are named, and reasons that are; of thousands of profiles every row may be slower.
NAMED_MAX = 20
FORMATS = ("text", "markdown", "csv", "json", "junit")
# Whose differences can be told in sentences.
EXPLAINED = 2


@click.command(short_help="Put profiles side by side, with verdicts.")
@click.argument("profiles", nargs=-1, required=True, type=ProfilePath())
@click.option("--baseline", metavar="NAME", help="Backend (one profile) or profile (several) to compare with.")
@click.option("--format", "format_name", default="text", show_default=True, metavar="|".join(FORMATS))
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option(
    "--fail-if-slower",
    type=FiniteRange(min=0),
    metavar="PCT",
    help="Exit 1 if a cell is slower by more than PCT.",
)
@click.option("--force", is_flag=True, help="Compare also what the gate would keep apart; its rows say why.")
@click.option("--why", is_flag=True, help="Explain what differs between two profiles.")
def compare(
    *,
    profiles: tuple[Path, ...],
    baseline: str | None,
    format_name: str,
    as_json: bool,
    fail_if_slower: float | None,
    force: bool,
    why: bool,
) -> int:
    """Compare PROFILES in a table: one, its backends; several, each cell with the same cell of the first.

    A folder stands for the profiles in it.
    """
    import kit.compare.comparison as comparing
    from kit.compare.gate import NotComparableError
    from kit.compare.labels import distinct_labels
    from kit.profile.briefs import read_briefs
    from kit.suites.plan import check_choice

    check_choice("format", format_name, FORMATS)
    if as_json and format_name not in ("text", "json"):
        raise click.UsageError(f"--json and --format {format_name} cannot both be had; give one")
    format_name = "json" if as_json else format_name
    paths = profile_paths(profiles)
    if why:
        _check_why(paths, format_name, fail_if_slower)
        click.echo(_explained(paths, baseline, format_name))
        return 0
    with uncollected():
        labelled = list(zip(distinct_labels(paths), read_briefs(paths), strict=True))
        try:
            comparison = comparing.compare(labelled, baseline, force=force)
        except NotComparableError as error:
            if format_name == "junit":
                # A CI server that is given an empty file reports that, and not why.
                from kit.report import junit

                click.echo(junit.render_refusal(str(error)), nl=False)
            raise
        for piece in _rendered(comparison, format_name, fail_if_slower):
            click.echo(piece, nl=False)
    return 0 if fail_if_slower is None else _gate(comparison, fail_if_slower)


def _rendered(comparison: Comparison, format_name: str, fail_if_slower: float | None) -> Iterable[str]:
    """In pieces, as every row of thousands of profiles is too much to hold as text."""
    from kit.report import csv, json, markdown, text
    from kit.report.terminal import wants_color, width_of

    match format_name:
        case "markdown":
            return [markdown.render(comparison)]
        case "csv":
            return csv.pieces(comparison)
        case "json":
            return json.pieces(comparison)
        case "junit":
            from kit.report import junit

            return [junit.render(comparison, fail_if_slower)]
        case _:
            return [text.render(comparison, color=wants_color(sys.stdout), width=width_of(sys.stdout))]


def _gate(comparison: Comparison, allowed_pct: float) -> int:
    """Say on standard error which rows are slower than allowed, and what could not be judged; the exit code.

    Raises:
        NotComparableError: no row has a difference at all.
    """
    from kit.compare.counted import counted
    from kit.compare.gate import NotComparableError
    from kit.compare.not_compared import NOTHING_PASSED, is_empty, is_undecided, not_compared
    from kit.compare.regression import slower_rows
    from kit.report.plain import one_line

    slower = slower_rows(comparison, allowed_pct)
    for row in slower[:NAMED_MAX]:
        key = one_line(f"{row.profile}: {row.cell.key}")
        click.echo(f"kit: slower by more than {allowed_pct:g} %: {key}", err=True)
    if len(slower) > NAMED_MAX:
        click.echo(f"kit: … and {len(slower) - NAMED_MAX:,} more", err=True)
    missing = not_compared(comparison)
    if missing:
        reasons = "; ".join(f"{count:,} {why}" for why, count in missing.most_common(NAMED_MAX))
        click.echo(one_line(f"kit: {counted(missing.total(), 'cell')} not compared: {reasons}"), err=True)
    if is_empty(comparison):
        raise NotComparableError(NOTHING_PASSED)
    undecided = sum(is_undecided(row) for row in comparison.rows)
    if undecided:
        click.echo(
            f"kit: {len(slower)} slower, {undecided} unresolved: what is unresolved does not fail the gate", err=True
        )
    return EXIT_SLOWER if slower else 0


def _check_why(profiles: Sequence[Path], format_name: str, fail_if_slower: float | None) -> None:
    if len(profiles) != EXPLAINED:
        raise click.UsageError(f"--why explains what differs between two profiles; give two, not {len(profiles)}")
    if fail_if_slower is not None:
        raise click.UsageError("--why explains and judges nothing; give --fail-if-slower without it")
    if format_name not in ("text", "json"):
        raise click.UsageError(f"--why answers as text or json, not as {format_name}")


def _explained(profiles: Sequence[Path], baseline: str | None, format_name: str) -> str:
    """The profile named as `baseline` first. Both are read whole."""
    from kit.compare.comparison import baseline_of
    from kit.compare.labels import distinct_labels
    from kit.compare.why import explain
    from kit.profile.store import read_profile
    from kit.report import json, why_text
    from kit.report.terminal import wants_color

    labelled = list(zip(distinct_labels(profiles), map(read_profile, profiles), strict=True))
    first = baseline_of(labelled, baseline)
    why = explain(first, next(one for one in labelled if one is not first))
    rendered = json.render(why) if format_name == "json" else why_text.render(why, color=wants_color(sys.stdout))
    return rendered.rstrip("\n")
