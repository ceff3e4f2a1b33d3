"""`kit compare`: profiles side by side, with verdicts."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kit.cli.finite_range import FiniteRange

EXIT_SLOWER = 1
FORMATS = ("text", "markdown", "csv", "json")


@click.command(short_help="Put profiles side by side, with verdicts.")
@click.argument("profiles", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--baseline", metavar="NAME", help="Backend (one profile) or profile (several) to compare with.")
@click.option("--format", "format_name", default="text", show_default=True, metavar="|".join(FORMATS))
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option(
    "--fail-if-slower",
    type=FiniteRange(min=0),
    metavar="PCT",
    help="Exit 1 if a cell is slower by PCT.",
)
def compare(
    *,
    profiles: tuple[Path, ...],
    baseline: str | None,
    format_name: str,
    as_json: bool,
    fail_if_slower: float | None,
) -> int:
    """Compare PROFILES in a table: one, its backends; several, each cell with the same cell of the first."""
    import kit.compare.comparison as comparing
    from kit.compare.labels import distinct_labels
    from kit.compare.regression import slower_rows
    from kit.profile.store import read_profile
    from kit.report import csv, json, markdown, text
    from kit.report.terminal import wants_color
    from kit.suites.plan import check_choice

    check_choice("format", format_name, FORMATS)
    labelled = list(zip(distinct_labels(profiles), map(read_profile, profiles), strict=True))
    comparison = comparing.compare(labelled, baseline)
    if as_json or format_name == "json":
        rendered = json.render(comparison)
    elif format_name == "text":
        rendered = text.render(comparison, color=wants_color(sys.stdout))
    else:
        rendered = {"markdown": markdown, "csv": csv}[format_name].render(comparison)
    click.echo(rendered.rstrip("\n"))
    if fail_if_slower is None:
        return 0
    slower = slower_rows(comparison, fail_if_slower)
    for row in slower:
        click.echo(f"kit: slower by more than {fail_if_slower:g} %: {row.profile}: {row.cell.key}", err=True)
    undecided = sum(row.versus is not None and row.versus.verdict == "unresolved" for row in comparison.rows)
    if undecided:
        click.echo(
            f"kit: {len(slower)} slower, {undecided} unresolved: what is unresolved does not fail the gate", err=True
        )
    return EXIT_SLOWER if slower else 0
