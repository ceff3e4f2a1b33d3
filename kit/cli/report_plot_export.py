"""Verbs that write profiles in another form: `report` as a page, `plot` as a picture, `export` for other tools."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kit.cli.compare_and_audit import (
    CompareRequest,
    compared,
    framework_titles,
    meter_options,
    run_comparison,
    table_with_published,
)
from kit.cli.options import (
    PROFILE,
    PROFILES,
    LateChoice,
    check_out,
    echo_first,
    labelled_profiles,
    labels_of,
    profile_files,
    read_meter,
    say,
    without_collector,
)
from kit.distribution import need
from kit.errors import KitError
from kit.files import inside, write_atomically
from kit.profile.store import read_profile
from kit.report.values_in_words import one_line

if TYPE_CHECKING:
    from kit.compare.rows import Comparison
    from kit.profile.schema import Profile
    from kit.report.plot_kinds import Scale

PAGE_ENDINGS = (".html", ".htm")
PLOT_ENDINGS = (".svg", ".png", ".pdf")
LEFT_OUT_NAMED = 20
SIDE_IN = (2.0, 50.0)  # a smaller plot has no room for its text, a larger one no printer
PLOT_KIND = LateChoice("kit.report.plot_kinds", "KINDS")
# Formats that other commands write, and that people look for here.
ELSEWHERE = {
    name: f"kit compare PROFILE --format {name}" for name in ("csv", "json", "jsonl", "prometheus", "junit", "markdown")
}
ELSEWHERE |= dict.fromkeys(("html", "page"), "kit report PROFILE -o FILE.html")
ELSEWHERE |= {name: f"kit plot PROFILE -o FILE.{name}" for name in ("svg", "png", "pdf")}
EXPORT = LateChoice("kit.report.exports", "EXPORTS", ELSEWHERE)
# Of formats to export.
IN_A_FOLDER, BINARY, WITHOUT_MARKS = ("asv",), ("parquet",), ("asv", "bmf")


@click.command
@click.argument("profiles", nargs=-1, required=True, type=PROFILES)
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write FILE.html.")
@meter_options
@click.option("--force", is_flag=True, help="Replace FILE.")
@without_collector
def report(*, profiles: tuple[Path, ...], out: Path | None, force: bool, **chosen: Any) -> None:  # noqa: ANN401 - a meter's
    """Write PROFILES, files or folders of profiles, as one page that opens without a network.

    Without --out, write report.html here.
    """
    out = out or Path("report.html")
    check_out(out, PAGE_ENDINGS, force=force)
    paths = list(profile_files(profiles))
    labelled = labelled_profiles(paths, read_meter(chosen))
    for path, (_, profile) in zip(paths, labelled, strict=True):
        if not profile.measured:
            raise KitError(f"{path} was published, not measured; leave it out: the page shows what was published")
    from kit.report.page import page
    from kit.report.suite_report import suite_report

    together: Comparison | str
    try:
        together = compared(CompareRequest(profiles=tuple(paths), **chosen))
    except KitError as error:
        if not paths[1:]:
            raise
        together = str(error)
    suites: dict[str, list[tuple[str, Profile]]] = {}
    for label, profile in labelled:
        suites.setdefault(profile.suite.name, []).append((label, profile))
    tables = [table for members in suites.values() if (table := table_with_published(members)) is not None]
    titles = framework_titles(result.cell.backend for _, profile in labelled for result in profile.cells)
    html = page(labelled, together, list(map(suite_report, tables)), titles)
    try:
        write_atomically(out, html.encode())
    except OSError as error:
        raise KitError(
            f"--out {out} cannot be written: {error.strerror}; make room, or choose another folder"
        ) from None
    click.echo(one_line(str(out)))


def _size(_: click.Context, option: click.Parameter, value: str | None) -> tuple[float, float] | None:
    """Return ``8x5`` as two numbers."""
    if value is None:
        return None
    try:
        width, height = map(float, value.split("x"))
        if SIDE_IN[0] <= min(width, height) and max(width, height) <= SIDE_IN[1]:
            return width, height
    except ValueError:
        pass
    words = f"{value!r} is no size; give width and height from 2 to 50 inches, like 8x5"
    raise click.BadParameter(words, None, option)


@click.command
@click.argument("profiles", nargs=-1, required=True, type=PROFILES)
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write FILE.svg, .png or .pdf.")
@click.option("--kind", type=PLOT_KIND, help="Draw this kind. Default: the one that fits the suite.")
@click.option("--baseline", metavar="NAME", help="Compare with this platform, profile or row.")
@click.option("--metric", metavar="COLUMN", help="Draw this column of kit compare --format csv.")
@meter_options
@click.option("--title", metavar="TEXT", help="Write TEXT above the plot.")
@click.option(
    "--size",
    "size_in",
    callback=_size,
    metavar="WxH",
    help="Width and height in inches. Default: 6.5 and what it needs.",
)
@click.option("--dpi", type=click.IntRange(50, 1200), metavar="N", help="Pixels per inch of a PNG.  [default: 200]")
@click.option("--axis", type=click.Choice(["linear", "log"]), help="Scale of the vertical axis.")
@click.option("--force", is_flag=True, help="Replace FILE.")
def plot(
    *,
    profiles: tuple[Path, ...],
    out: Path | None,
    kind: str | None,
    baseline: str | None,
    metric: str | None,
    title: str | None,
    size_in: tuple[float, float] | None,
    dpi: int | None,
    axis: Scale | None,
    force: bool,
    **chosen: Any,  # noqa: ANN401 - the options of a meter
) -> None:
    """Draw PROFILES: files, or folders of profiles. Without --out, write KIND.svg here."""
    need("matplotlib", "plot")
    from kit.report.plot_kinds import KINDS, PlotRequest, usual_kind

    if out is not None:
        check_out(out, PLOT_ENDINGS, force=force)
    paths = list(profile_files(profiles))
    labelled = labelled_profiles(paths, read_meter(chosen))
    kind = kind or usual_kind([profile for _, profile in labelled])
    if out is None:
        out = Path(f"{kind}.svg")
        check_out(out, PLOT_ENDINGS, force=force)
    if dpi is not None and out.suffix.lower() != ".png":
        raise click.UsageError(f"--dpi: {out.suffix} has no pixels; leave it out, or name a .png")
    if baseline is not None and not KINDS[kind].compares:
        raise click.UsageError(f"--baseline: {kind} compares nothing; leave it out, or use --kind gain or rounds")
    if metric is not None and (KINDS[kind].alike or KINDS[kind].guides):
        raise click.UsageError(f"--metric: {kind} has its own; leave it out, or use --kind times")
    if axis == "linear" and KINDS[kind].guides:
        raise click.UsageError("--axis linear: a roofline needs logarithmic axes; leave it out")
    from kit.report.plot_figure import draw, file_of

    titles = framework_titles(result.cell.backend for _, profile in labelled for result in profile.cells)
    figure, left_out = draw(PlotRequest(kind, labelled, titles, baseline, metric, title, axis, size_in))
    write_atomically(out, file_of(figure, out.suffix.lower(), dpi or 200))
    click.echo(one_line(str(out)))
    echo_first([f"not drawn: {line}" for line in left_out], LEFT_OUT_NAMED)


@click.command
@click.argument("format_name", metavar="FORMAT", type=EXPORT)
@click.argument("profile", type=PROFILE)
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="PATH", help="Write to this file; asv: folder.")
@click.option("--commit", metavar="HASH", help="asv: the commit that was measured.")
@click.option(
    "--level",
    type=click.Choice(["cells", "launches", "blocks", "steps"]),
    default="cells",
    show_default=True,
    help="parquet: what a row is.",
)
@click.option("--force", is_flag=True, help="Replace the file at --out.")
def export(  # noqa: PLR0917 - click passes them by name
    format_name: str, profile: Path, out: Path | None, commit: str | None, level: str, force: bool
) -> None:
    """Write PROFILE as FORMAT: for Bencher, github-action-benchmark, asv, Perfetto, or as Parquet."""
    from kit.report.exports import EXPORTS, Exported

    is_folder = format_name in IN_A_FOLDER
    if out is None and format_name in (*IN_A_FOLDER, *BINARY):
        raise click.UsageError(f"{format_name} needs --out {'FOLDER' if is_folder else 'FILE'}: where to write it")
    if commit is not None and format_name != "asv":
        raise click.UsageError(f"--commit: {format_name} has no commit; leave it out")
    if level != "cells" and format_name != "parquet":
        raise click.UsageError(f"--level: {format_name} has rows of its own; leave it out")
    if out is not None and not is_folder:
        check_out(out, force=force)
    elif out is not None and os.path.lexists(out) and not out.is_dir():
        raise click.UsageError(f"--out {out}: this is a file; name a folder")
    (label,), document, comparison = labels_of([profile]), read_profile(profile), run_comparison(profile)
    files = EXPORTS[format_name](
        Exported(label, profile, document, comparison, commit, level, out if is_folder else None)
    )
    if format_name in WITHOUT_MARKS and (count := sum(bool(row.value("is_disturbed")) for row in comparison.rows)):
        say(f"other programs disturbed {count} of {len(comparison.rows)} rows, which {format_name} has no mark for")
    if out is None:
        sys.stdout.buffer.write(files[""])
        return
    for name, content in files.items():
        file = inside(out, name) if name else out
        if name:
            file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content)
    click.echo(one_line(str(out)))
