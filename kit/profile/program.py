"""A program: a network of the user's own, which a function of theirs makes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec


class ProgramSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where the function is, and what its file held."""

    path: str  # of the file
    function: str
    module: str | None = None  # under which it is imported; null: the file is run by its path
    takes_task: bool  # it takes the task as an argument; otherwise it has one task
    sha256: str  # of the file; what it imports is not in it


def file_sha256(path: str | Path) -> str | None:
    """Return the SHA-256 of a file's bytes, None where it cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None
