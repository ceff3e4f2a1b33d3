"""What several verbs take and print: profiles, `--format` and `--json`."""

from __future__ import annotations

import functools
import gc
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from kit.errors import KitError
from kit.printable import printable
from kit.report.formats import FORMATS, USUAL, write
from kit.report.report_table import Report

if TYPE_CHECKING:
    from kit.compare.meter import Meter


class FiniteRange(click.FloatRange):
    """A range of finite numbers; click lets NaN pass, as no comparison with it is true, and infinity if unbounded."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's
        """Return the number."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number; give one such as 3 or 0.5", param, ctx)
        return number


PROFILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PROFILES = click.Path(exists=True, path_type=Path)
CLOCK_SOURCE = click.Choice(("auto", "monotonic_raw", "tsc", "cntvct"))

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
R = TypeVar("R")
# Fewer files are read in the time that processes take to start.
PARALLEL_LEAST, CHUNK = 32, 8


DATA = click.option(
    "--data",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="Data set; auto: the set of each network, else synthetic.",
)
METER = click.option(
    "--meter",
    "meter_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.csv",
    help="Read joules from an external meter's log: columns time and power_w, or time and energy_j.",
)


def read_meter(file: Path | None) -> Meter | None:
    """Return the log that `METER` names; None: none was given, and NumPy need not be imported."""
    if file is None:
        return None
    from kit.compare.meter import Meter

    return Meter(file)


def format_options(command: F, formats: Sequence[str] = FORMATS) -> F:
    """Return the command with both options, which give it `format_name`."""
    command = click.option("--json", "format_name", flag_value="json", help="Same as --format json.")(command)
    choice, words = click.Choice(formats), "Choose the output format."
    return click.option("--format", "format_name", type=choice, default=USUAL, show_default=True, help=words)(command)


def listing_format_options(command: F) -> F:
    """Return a command that lists things, which has neither test cases for a CI server nor numbers to monitor."""
    return format_options(command, [name for name in FORMATS if name not in ("junit", "prometheus")])


def print_report(report: Report, format_name: str = USUAL, stream: IO[str] | None = None) -> None:
    """Print the report to a stream, by default standard output."""
    click.echo(write(report, format_name, stream), file=stream, nl=False)


def say(line: str) -> None:
    """Print one line for the user, beside what the command prints."""
    click.echo(printable(f"kit: {for_a_log(line)}"), err=True)


def for_a_log(line: str) -> str:
    """Return a line for standard error without credentials: others read logs. A command in it names them as cut."""
    if "=" not in line and "://" not in line:
        return line
    from kit.fingerprint.private import without_secrets

    return without_secrets(line)


def echo_first(lines: Sequence[str], count: int) -> None:
    """Print the first of some lines to standard error, and how many more there are."""
    from kit.report.values_in_words import one_line

    for line in lines[:count]:
        say(one_line(line))
    if len(lines) > count:
        say(f"… and {len(lines) - count:,} more")


def profile_files(given: Iterable[Path]) -> Iterator[Path]:
    """Yield the files given, and of each folder its profiles in order of their names."""
    for path in given:
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not files:
            raise KitError(f"{path}: this folder has no profile; give a folder with .json files")
        yield from files


def check_out(out: Path, endings: Sequence[str] = (), *, force: bool) -> None:
    """Refuse a file that cannot or should not be written, before anything is read; no `endings`: any will do."""
    if endings and out.suffix.lower() not in endings:
        listed = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise click.UsageError(f"--out {out}: unknown file type; give a name that ends in {listed}")
    if out.is_dir():
        raise click.UsageError(f"--out {out}: this is a folder; name a file in it")
    if not out.parent.is_dir():
        raise click.UsageError(f"--out {out}: the folder does not exist; create it, or choose another")
    if os.path.lexists(out) and not force:
        raise click.UsageError(f"--out {out}: this file exists; choose another, or replace it with --force")


def labels_of(paths: Sequence[Path]) -> list[str]:
    """Return file names without their ending; with the folder where names collide, numbered where that does, too."""
    from kit.printable import printable_line

    labels = [path.stem for path in paths]
    if len(set(labels)) < len(labels):
        labels = [f"{path.absolute().parent.name}/{path.stem}" for path in paths]
    labels = [printable_line(label) for label in labels]
    before = [labels[:index].count(label) for index, label in enumerate(labels)]
    return [f"{label}#{count + 1}" if count else label for label, count in zip(labels, before, strict=True)]


def without_collector(command: F) -> F:
    """Return a command of a process of its own during which Python looks for no cycles of objects.

    A thousand profiles are millions of objects without a cycle among them: not to look for one halves the time, and
    to look again before the process ends would cost a tenth of a second.
    """

    @functools.wraps(command)
    def called(*given: Any, **options: Any) -> Any:  # noqa: ANN401 - as of the command
        gc.disable()
        return command(*given, **options)

    return called  # type: ignore[return-value]


def in_processes(read: Callable[[T], R], items: Sequence[T], *, in_one: bool = False) -> list[R]:
    """Return what `read` makes of each item, in order; of many by a process for each CPU, or in this one."""
    cpus = len(os.sched_getaffinity(0))
    if in_one or len(items) < PARALLEL_LEAST or cpus == 1:
        return list(map(read, items))
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # By fork: what is imported already need not be again, and no thread has been started.
    with ProcessPoolExecutor(cpus, mp_context=get_context("fork")) as pool:
        return list(pool.map(read, items, chunksize=CHUNK))
