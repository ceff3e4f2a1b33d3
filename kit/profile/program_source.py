"""What a user brings to be measured, as a profile keeps it: a program's file and its function, or a command."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import Literal

import msgspec

from kit.files import open_limited
from kit.profile.fields import Int64

# No one writes a file of so much Python; a pipe or a device is none.
PROGRAM_MAX_B = 16 << 20
# A command may be larger, with all its libraries in it.
CODE_MAX_B = 4 << 30
# The function of a program's file, where none is named.
DEFAULT_FUNCTION = "program"


class CommandSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that is measured: a step is one run of it, a block's figure the mean over its runs."""

    words: list[str]
    serve: list[str] = []  # a server that runs while a round lasts, and has a free port for `{port}`
    prepare: list[str] = []  # before each run
    exit_codes: list[Int64] | None = msgspec.field(default_factory=lambda: [0])  # with which it may end; null: any
    # A pattern with one group, or json:PATH, of what counts in place of the time of a step; empty: that of a run.
    figure: str = ""
    better: Literal["less", "more"] = "less"
    unit: str = ""

    @property
    def has_figure(self) -> bool:
        """Return whether something else counts than the time of a step."""
        return bool(self.figure or self.prepare)

    @property
    def options(self) -> list[str]:
        """The words of `kit run` that hold for all its commands, as a shell takes them."""
        words = ["--prepare", shlex.join(self.prepare)] if self.prepare else []
        words += ["--figure", self.figure, "--better", self.better] if self.figure else []
        words += ["--unit", self.unit] if self.figure and self.unit else []
        codes = "all" if self.exit_codes is None else ",".join(str(code) for code in self.exit_codes if code)
        return [shlex.quote(word) for word in [*words, *(["--ignore-failure", codes] if codes else [])]]


class ProgramSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where the function is that makes a network of the user's own, or a command, and what its file held."""

    path: str  # of the file
    function: str
    module: str | None = None  # under which it is imported; null: the file is run by its path
    takes_task: bool  # it takes the task as an argument; otherwise it has one task
    sha256: str  # of the file; what it imports is not in it
    command: CommandSource | None = None  # in place of the function

    @property
    def text(self) -> str:
        """What names it on a command line: ``my_model.py:function``."""
        where = self.path if self.module is None else self.module
        return where if self.function == DEFAULT_FUNCTION else f"{where}:{self.function}"

    def words(self, name: str) -> list[str]:
        """Return the words of `kit run` for it as program `name`, as a shell takes them: a path has `~` for home.

        Those of a command leave out its `options`.
        """
        if self.command is not None:
            words = ["--command", f"{name}={shlex.join(self.command.words)}"]
            words += ["--serve", f"{name}={shlex.join(self.command.serve)}"] if self.command.serve else []
            return [shlex.quote(word) for word in words]
        text = self.text
        quoted = f'"$HOME"/{shlex.quote(text[2:])}' if text.startswith("~/") else shlex.quote(text)
        return ["--program", f"{shlex.quote(name)}={quoted}"]


def file_sha256(path: str | Path) -> str | None:
    """Return the SHA-256 of the bytes of a program's file; null where it cannot be read, or is no such file."""
    try:
        with open_limited(Path(path), CODE_MAX_B) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type] # it is a file
    except OSError:
        return None
