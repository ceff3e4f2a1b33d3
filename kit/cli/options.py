"""What several verbs take and print: options of a request's fields, profiles, `--format` and `--json`."""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial, wraps
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from kit.errors import KitError
from kit.option import Option, options_of
from kit.printable import printable
from kit.report.formats import FORMATS, USUAL, write
from kit.report.report_table import Report

if TYPE_CHECKING:
    from kit.compare.meter import Meter
    from kit.profile.schema import Profile


class FiniteRange(click.FloatRange):
    """A range of finite numbers; click lets NaN pass, as no comparison with it is true, and infinity if unbounded."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's
        """Return the number."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number; give one such as 3 or 0.5", param, ctx)
        return number


class LateChoice(click.Choice[str]):
    """A choice among the names in a table, whose module is imported when they are asked for: not for other verbs."""

    def __init__(self, module: str, table: str, elsewhere: Mapping[str, str] | None = None) -> None:
        self.case_sensitive = True
        self._module, self._table, self._elsewhere = module, table, elsewhere or {}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401 - click's
        """Return a name; of one that another command has, say which does."""
        if value in self._elsewhere:
            self.fail(f"{value!r} is no format of this command; use {self._elsewhere[value]}", param, ctx)
        return super().convert(value, param, ctx)

    @cached_property
    def choices(self) -> Sequence[str]:  # type: ignore[override]
        """The names in the table, which is imported when the first of them is wanted."""
        return tuple(getattr(import_module(self._module), self._table))


class ProfilePath(click.Path):
    """A profile's path; where there is none yet, an unfinished run may lie beside it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's
        """Return the path."""
        if not Path(value).exists():
            from kit.profile.unfinished import folder_of, unfinished_refusal

            if folder_of(Path(value)).is_dir():
                raise unfinished_refusal(Path(value))
        return super().convert(value, param, ctx)


PROFILE = ProfilePath(exists=True, dir_okay=False, path_type=Path)
PROFILES = ProfilePath(exists=True, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
CLOCK_SOURCE = click.Choice(("auto", "monotonic_raw", "tsc", "cntvct"))

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
R = TypeVar("R")
# Fewer files are read in the time that processes take to start.
PARALLEL_LEAST, CHUNK = 32, 8


def options_from(request: type) -> Callable[[F], F]:
    """Return what gives a command the options of the fields of a request, in their order."""

    def with_options(command: F) -> F:
        for name in reversed(options_of(request)):
            command = option_from(request, name)(command)
        return command

    return with_options


def option_from(request: type, name: str) -> Callable[[F], F]:
    """Return what gives a command the option of a field; one that is repeatable takes ``--batch 32,64``, too."""
    if name == "format_name":
        return format_options
    option = options_of(request)[name]
    kind, more = _click_type(option), dict[str, Any](metavar=option.metavar)
    if not option.flag.startswith("-"):
        several = {"nargs": -1, "required": True, "type": kind}
        return click.argument(name, **several if option.is_several else {"required": False, "default": option.usual})
    if option.kind is bool:
        more["is_flag"] = True
    elif option.is_several and not option.is_one_text:
        more["multiple"] = True
        if option.kind is Path:
            more["type"] = kind
        elif option.read is None:
            more["callback"] = partial(_split_at_commas, kind)
            more["metavar"] = f"[{'|'.join(option.choices)}]" if option.choices else option.metavar
    else:
        more |= {"type": kind, "default": "" if option.is_one_text else option.usual}
    if option.read is not None:
        more["callback"] = partial(_read, option.read)

    def with_option(command: F) -> F:
        if option.off:
            command = click.option(option.flag.replace("--", "--no-"), is_flag=True, help=option.off)(command)
        return click.option(option.flag, name, help=option.words, show_default=option.shows_default, **more)(command)

    return with_option


def _click_type(option: Option) -> click.ParamType[Any]:
    """Return what click checks each value with."""
    if option.choices:
        return click.Choice(option.choices)
    if option.kind is int:
        limits: Any = (option.least, option.most)
        return click.IntRange(*limits)
    if option.kind is float:
        least = option.least if option.above is None else option.above
        return FiniteRange(least, option.most, min_open=option.above is not None)
    if option.kind is Path:
        return PROFILES if option.is_several and option.read is None else FILE
    return click.STRING


def _split_at_commas(
    kind: click.ParamType[Any], context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[Any, ...]:
    return tuple(kind.convert(part, option, context) for text in given for part in text.split(","))


def _read(read: Callable[[Any], Any], _: click.Context, option: click.Parameter, given: object) -> object:
    try:
        return read(given)
    except ValueError as error:
        raise click.BadParameter(str(error), None, option) from None


def read_meter(chosen: Mapping[str, Any]) -> Meter | None:
    """Return the logs of power among some options; None: no file was given, and NumPy need not be imported."""
    if not chosen["meter_files"]:
        if chosen["meter_zone"] or chosen["meter_columns"]:
            raise KitError("--meter-zone and --meter-column belong to a log; give --meter FILE, too")
        return None
    from kit.compare.meter import Meter, MeterChoice

    return Meter(MeterChoice(chosen["meter_files"], chosen["meter_zone"], chosen["meter_columns"]))


def labelled_profiles(paths: Sequence[Path], meter: Meter | None = None) -> list[tuple[str, Profile]]:
    """Return profiles with their labels; with logs of power, their joules are the logs'."""
    from kit.profile.store import read_profile

    labelled = [(label, read_profile(path)) for label, path in zip(labels_of(paths), paths, strict=True)]
    if meter is None:
        return labelled
    labelled = [
        (label, meter.replaces_joules_of(label, profile) if profile.measured else profile)
        for label, profile in labelled
    ]
    meter.notes()  # it raises where the log is of another time altogether
    return labelled


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

    A thousand profiles are millions of objects without a cycle among them: not to look for one halves the time.
    """

    @wraps(command)
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
