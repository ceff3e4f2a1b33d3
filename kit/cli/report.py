"""`kit report`: profiles as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kit.cli.compare_command import CompareRequest, compared, framework_titles, table_with_published
from kit.cli.options import PROFILES, check_out, labels_of, profile_files, without_collector
from kit.errors import KitError
from kit.files import write_atomically
from kit.profile.store import read_profile
from kit.report.plain import one_line

if TYPE_CHECKING:
    from kit.compare.comparison import Comparison
    from kit.profile.schema import Profile

ENDINGS = (".html", ".htm")


@click.command
@click.argument("profiles", nargs=-1, required=True, type=PROFILES)
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write FILE.html.")
@click.option("--force", is_flag=True, help="Replace FILE.")
@without_collector
def report(*, profiles: tuple[Path, ...], out: Path | None, force: bool) -> None:
    """Write PROFILES, files or folders of profiles, as one page that opens without a network.

    Without --out, write report.html here.
    """
    out = out or Path("report.html")
    check_out(out, ENDINGS, force=force)
    paths = list(profile_files(profiles))
    labelled = [(label, read_profile(path)) for label, path in zip(labels_of(paths), paths, strict=True)]
    for path, (_, profile) in zip(paths, labelled, strict=True):
        if not profile.measured:
            raise KitError(f"{path} was published, not measured; leave it out: the page shows what was published")
    from kit.report.page import page
    from kit.report.suite_table import suite_report

    together: Comparison | str
    try:
        together = compared(CompareRequest(tuple(paths)), "step_ns")
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
