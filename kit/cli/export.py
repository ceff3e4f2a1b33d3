"""`kit export`: a profile for other tools."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from kit.cli.compare_command import run_comparison
from kit.cli.options import check_out, labels_of, say
from kit.files import inside, write_atomically
from kit.profile.store import read_profile
from kit.report.exports import FORMATS, Exported
from kit.report.exports import export as files_of
from kit.report.plain import one_line

IN_A_FOLDER, BINARY, WITHOUT_MARKS = ("asv",), ("parquet",), ("asv", "bmf")


@click.command
@click.argument("format_name", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument("profile", type=click.Path(exists=True, dir_okay=False, path_type=Path))
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
    files = files_of(
        format_name,
        Exported(label, profile, document, comparison, commit, level, out if is_folder else None),
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
