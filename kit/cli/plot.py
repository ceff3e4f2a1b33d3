"""`kit plot`: profiles as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from kit.cli.compare_command import framework_titles
from kit.cli.options import PROFILES, check_out, echo_first, labels_of, profile_files
from kit.extras import need
from kit.files import write_atomically
from kit.profile.store import read_profile
from kit.report.plain import one_line
from kit.report.plot_kinds import KINDS, PlotRequest, Scale, usual_kind

ENDINGS = (".svg", ".png", ".pdf")
LEFT_OUT_NAMED = 20
SIDE_IN = (2.0, 50.0)  # a smaller plot has no room for its text, a larger one no printer


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
@click.option("--kind", type=click.Choice(list(KINDS)), help="Draw this kind. Default: the one that fits the suite.")
@click.option("--baseline", metavar="NAME", help="Compare with this platform, profile or row.")
@click.option("--metric", metavar="COLUMN", help="Draw this column of kit compare --format csv.")
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
) -> None:
    """Draw PROFILES: files, or folders of profiles. Without --out, write KIND.svg here."""
    need("matplotlib", "plot")
    if out is not None:
        check_out(out, ENDINGS, force=force)
    paths = list(profile_files(profiles))
    labelled = [(label, read_profile(path)) for label, path in zip(labels_of(paths), paths, strict=True)]
    kind = kind or usual_kind([profile for _, profile in labelled])
    if out is None:
        out = Path(f"{kind}.svg")
        check_out(out, ENDINGS, force=force)
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
