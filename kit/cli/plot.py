"""`kit plot`: profiles as a picture."""

from __future__ import annotations

import os
from pathlib import Path

import click

from kit.cli.options import PROFILES, echo_first, labels_of, profile_files
from kit.report.plot import KINDS, usual_kind

ENDINGS = (".svg", ".png", ".pdf")
# Kinds in which something is compared.
WITH_BASELINE = ("platforms", "gain", "rounds")
LEFT_OUT_NAMED = 20


@click.command
@click.argument("profiles", nargs=-1, required=True, type=PROFILES)
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write FILE.svg, .png or .pdf.")
@click.option("--kind", type=click.Choice(list(KINDS)), help="Draw this kind. Default: the one that fits the suite.")
@click.option("--baseline", metavar="NAME", help="Compare with this platform, device, profile or row.")
@click.option("--force", is_flag=True, help="Replace FILE.")
def plot(*, profiles: tuple[Path, ...], out: Path | None, kind: str | None, baseline: str | None, force: bool) -> None:
    """Draw PROFILES: files, or folders of profiles. Without --out, write KIND.svg here."""
    if out is not None:
        _check_out(out, force=force)
    from kit.compare.ceilings import without_operations
    from kit.profile.store import read_profile

    paths = list(profile_files(profiles))
    labelled = [(label, read_profile(path)) for label, path in zip(labels_of(paths), paths, strict=True)]
    if kind != "roofline":
        labelled = [(label, without_operations(profile)) for label, profile in labelled]
    kind = kind or usual_kind([profile for _, profile in labelled])
    if out is None:
        out = Path(f"{kind}.svg")
        _check_out(out, force=force)
    if baseline is not None and kind not in WITH_BASELINE:
        raise click.UsageError(f"--baseline: {kind} compares nothing; leave it out, or use --kind gain or rounds")
    from kit.cli.compare import framework_titles
    from kit.profile.atomic import write_atomically
    from kit.report.plain import one_line
    from kit.report.plot.picture import PlotRequest, draw, file_of

    picture = draw(PlotRequest(kind, labelled, framework_titles(), baseline))
    write_atomically(out, file_of(picture, out.suffix.lower()))
    click.echo(one_line(str(out)))
    echo_first([f"not drawn: {line}" for line in picture.left_out], LEFT_OUT_NAMED)


def _check_out(out: Path, *, force: bool) -> None:
    """Refuse a file that cannot or should not be written, before anything is read."""
    if out.suffix.lower() not in ENDINGS:
        raise click.UsageError(f"--out {out}: unknown file type; give a name that ends in .svg, .png or .pdf")
    if out.is_dir():
        raise click.UsageError(f"--out {out}: this is a folder; name a file in it")
    if not out.parent.is_dir():
        raise click.UsageError(f"--out {out}: the folder does not exist; create it, or choose another")
    if os.path.lexists(out) and not force:
        raise click.UsageError(f"--out {out}: this file exists; choose another, or replace it with --force")
