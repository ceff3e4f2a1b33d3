"""Everything that `kit` does with a file that somebody else gives it, in this process.

bytes ──► read ──► attach steps ──► compare ──► every renderer        `kit show`, `kit compare` in all their formats
             └──► one printable line, and the exit code of a KitError
"""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path

import click
import msgspec
from fuzz.mutations import sealed
from fuzz.promises import CHECKS, check_json, check_said, check_text

from kit.cli.app import app
from kit.cli.compare import FORMATS
from kit.errors import KitError
from kit.profile.journal import journal_path, read_journal
from kit.profile.step_archive import StepArchiveError, unpack

# Of `--fail-if-slower`: one for each row, and a sum.
GATE_LINES = 100
# The names of a profile's series of steps.
SERIES = tuple(f"cell{cell}.launch{launch}" for cell in range(6) for launch in range(6))


def kit(*arguments: str | Path) -> tuple[int, str, str]:
    """`kit` with these arguments: exit code, output, and what is said beside it. A warning counts as a crash."""
    out, err = io.StringIO(), io.StringIO()
    message = ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            code = app.main([str(argument) for argument in arguments], prog_name="kit", standalone_mode=False)
        except KitError as error:
            code, message = error.exit_code, str(error)
        except click.ClickException as error:
            code, message = 2, error.format_message()
    return (code if isinstance(code, int) else 0), out.getvalue(), message + err.getvalue()


def exercise(profile: Path, *others: Path) -> bool:
    """Show `profile`, and compare it alone and with each of the others, in every way; whether it could be read.

    Raises:
        BrokenPromiseError: what came out may not come out. Any other exception is a crash.
    """
    code, out, said = kit("show", profile)
    check_text(out)
    check_said(said)
    _show_json(profile)
    compared(profile)
    if code:
        return False
    for other in others:
        compared(profile, other)
        compared(other, profile)
        _explain(other, profile)
    return True


def exercise_bytes(data: bytes, folder: Path, *others: Path) -> bool:
    """A file of any kind that `kit` reads, told apart by how it begins; whether it could be read."""
    if data.startswith(b"PK"):
        return _exercise_archive(data)
    if data[8:9] == b" ":
        return _exercise_journal(data, folder)
    file = folder / "fuzzed.json"
    file.write_bytes(data)
    read = exercise(file, *others)
    resealed = None if read else _resealed(data)
    if resealed is None:
        return read
    file.write_bytes(resealed)
    return exercise(file, *others)


def _show_json(profile: Path) -> None:
    _, out, said = kit("show", profile, "--json")
    check_said(said)
    if out:
        check_json(out)


def compared(*profiles: Path) -> None:
    """`kit compare` in every format."""
    for form in FORMATS:
        _, out, said = kit("compare", *profiles, "--format", form, "--fail-if-slower", "5")
        check_said(said, GATE_LINES)
        if out.strip():
            CHECKS[form](out)


def _explain(*profiles: Path) -> None:
    for form in ("text", "json"):
        _, out, said = kit("compare", *profiles, "--why", "--format", form)
        check_said(said)
        if out:
            CHECKS[form](out)


def _exercise_archive(data: bytes) -> bool:
    try:
        unpack(data, SERIES)
    except StepArchiveError as error:
        check_said(str(error))
        return False
    return True


def _exercise_journal(data: bytes, folder: Path) -> bool:
    file = journal_path(folder / "fuzzed.json")
    file.write_bytes(data)
    try:
        read_journal(file)
    except KitError as error:
        check_said(str(error))
        return False
    return True


def _resealed(data: bytes) -> bytes | None:
    """The same profile with a digest that holds, which no mutation would ever meet; null: there is none."""
    try:
        plain = msgspec.json.decode(data)
        return sealed(plain) if isinstance(plain, dict) else None
    except (ValueError, RecursionError):
        return None
