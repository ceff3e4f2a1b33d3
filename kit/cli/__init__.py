"""The `kit` command: every verb, none of its work, and one line where it fails.

To add a verb, write a click command of its name in a file of `kit/cli/`, and name both in VERBS.
"""

from __future__ import annotations

import errno
import gc
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import click

from kit.errors import EXIT_BAD, EXIT_INTERRUPTED, KitError
from kit.nearest import choices
from kit.printable import printable_line
from kit.version import __version__

# In the order of `kit --help`: each verb's file and its line there. A file is imported when its verb is called, and a
# verb imports what it needs when it is called.
VERBS = {
    "run": ("run_and_selftest", "Measure a suite and write its profile."),
    "compare": ("compare_and_audit", "Compare the cells of a profile, or several profiles, with verdicts."),
    "audit": ("compare_and_audit", "Check profiles for power, utilization and fairness problems."),
    "report": ("report_plot_export", "Write profiles as one page that opens anywhere."),
    "plot": ("report_plot_export", "Draw profiles as SVG, PNG or PDF."),
    "export": ("report_plot_export", "Write a profile for Bencher, asv, Perfetto and others."),
    "show": ("listings", "Show everything that one profile recorded."),
    "suites": ("listings", "List the built-in suites."),
    "clock": ("listings", "Measure how precise this machine's clock is."),
    "data": ("listings", "Check the data sets, or download them."),
    "launch": ("launch_and_fleet", "Measure in a container, with Docker or Podman."),
    "fleet": ("launch_and_fleet", "Measure every node of a cluster and name the slow ones."),
    "doctor": ("listings", "Report what this machine can and cannot measure, and why."),
    "selftest": ("run_and_selftest", "Measure the smallest slowdown this machine can detect."),
}
# Steadykit reads Linux's counters and sensors, and controls its workers by Linux's signals.
NOT_LINUX = f"it works only on Linux, and this is {sys.platform}; use Linux, or a virtual machine with Linux"
OUT_OF = {
    errno.EMFILE: "this process may not open more files; raise the limit with `ulimit -n`",
    errno.ENFILE: "the machine has no room for another open file; close some programs",
    errno.ENOMEM: "there is not enough memory; free some, or raise the limit",
}
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _not_a_choice(refusal: re.Match[str]) -> str:
    known = re.findall("'([^']*)'", refusal[2])
    return f"{refusal[1]!r} is not a choice; {choices(refusal[1], known)}"


def _plain(limit: str) -> str:
    """Return a limit as it is typed: ``1000000``, and not ``1000000.0``."""
    return limit.removesuffix(".0")


# What click says -> what the user reads.
PLAIN_WORDS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"Invalid value for '(-[^']*)': ", r"\1: "),
    (r"Invalid value for '[^']*': ", ""),
    (r"Missing argument '[\[{]?([\w|]+)[^']*'\.(?: Choose from.*)?", r"\1 is missing; `--help` shows what to give"),
    (r"(?:Path|File|Directory) '(.*)' does not exist\.", r"\1: no such file or folder"),
    (r"is not a valid integer(?: range)?\.", "is not a whole number; give one such as 3"),
    (r"is not a valid float(?: range)?\.", "is not a number; give one without a unit, such as 3 or 0.5"),
    (r"is not in the range 0<x<=(\S+)\.", lambda refusal: f"is out of range; give more than 0 to {_plain(refusal[1])}"),
    (
        r"is not in the range (\S+)<=x<=(\S+)\.",
        lambda refusal: f"is out of range; give {_plain(refusal[1])} to {_plain(refusal[2])}",
    ),
    (r"File '(.*)' is a directory\.", r"\1 is a folder; give a file"),
    (r"'(.*)' is not one of (.*)\.", _not_a_choice),
    (r"No such command '(.*)'\.", lambda refusal: f"{refusal[1]!r} is not a command; {choices(refusal[1], VERBS)}"),
)


def in_plain_words(error: click.ClickException) -> str:
    """Return what click refuses as one line in Steadykit's words."""
    line = error.format_message()
    if isinstance(error, click.BadParameter) and getattr(error.param, "metavar", None) == "S":
        line = re.sub(r"is not a valid float(?: range)?\.", "is no number of seconds; give one such as 3 or 0.5", line)
    for pattern, words in PLAIN_WORDS:
        line = re.sub(pattern, words, line)
    return printable_line(line)


class Verbs(click.Group):
    """Commands by name, imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own
        """Return the verbs in their order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's own
        """Import a verb; null for one that there is not."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"kit.cli.{VERBS[cmd_name][0]}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's own
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kit", message="%(prog)s %(version)s")
def app() -> None:
    """Measure how fast networks train and infer in TensorFlow, PyTorch and JAX, and whether a difference is real."""


def main() -> None:
    """Run the command and end the process with its exit code; what a user can cause is one line, never a traceback."""
    _open_closed_streams()
    if sys.platform != "linux":
        sys.exit(_failed(NOT_LINUX, EXIT_BAD))
    try:
        code = app.main(prog_name="kit", standalone_mode=False)
        # A full disk under our output shows here, and not at exit.
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as wanted:
        click.echo(wanted.format_message())
        code = 0
    except click.ClickException as error:
        code = _failed(in_plain_words(error), EXIT_BAD)
    except KitError as error:
        code = _failed(str(error), error.exit_code)
    except (click.exceptions.Abort, KeyboardInterrupt):
        code = _failed("interrupted", EXIT_INTERRUPTED)
    except MemoryError:
        code = _failed("there is not enough memory; free some, or raise the limit", EXIT_BAD)
    except OSError as error:
        code = _file_failed(error)
    # Python looks for cycles once more as it ends: of a thousand profiles for two tenths of a second.
    gc.freeze()
    sys.exit(code if isinstance(code, int) else 0)


def _open_closed_streams() -> None:
    """Open what is closed of standard input, output and error: the next file would take its number, and its output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - for as long as the process
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _failed(line: str, code: int) -> int:
    if "=" in line or "://" in line:
        from kit.cli.options import for_a_log

        line = for_a_log(line)
    with suppress(OSError):  # nobody reads it
        sys.stderr.write(f"kit: {line}\n")
    return code


def _file_failed(error: OSError) -> int:
    """Return the exit code where our output or a file of the user's fails; another file's error is a fault of the kit.

    A reader that has gone wanted no more.
    """
    if error.errno in OUT_OF:
        return _failed(OUT_OF[error.errno], EXIT_BAD)
    if error.filename is None or error.errno in (errno.EPIPE, *NO_ROOM):
        # What is still buffered would fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    elif not _is_typed(str(error.filename)):
        raise error
    if error.errno == errno.EPIPE:
        return 1
    advice = "; make room, or write elsewhere" if error.errno in NO_ROOM else ""
    subject = error.filename or "input or output failed"
    return _failed(printable_line(f"{subject}: {error.strerror or error}{advice}"), EXIT_BAD)


def _is_typed(file: str) -> bool:
    """Return whether a word of the command names a file, or its folder, or a file beside it; or it lies here."""
    path, words = Path(file).absolute(), [word.rpartition("=")[2] for word in sys.argv[1:]]
    named = [Path(word).absolute() for word in words]
    return {path, path.parent} & {Path.cwd(), *named, *(word.parent for word in named)} != set()
