"""Whether a launch failed because the disk was full under its folder: then it is run again when there is room."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from kit.profile.launch import Failure
from kit.worker.no_room import ERRNOS, EXIT_NO_ROOM, EXIT_NOT_FLUSHED, says_no_room

# A record of 100,000 steps takes 0.7 MB.
ROOM_NEEDED_B = 1 << 20


@contextlib.contextmanager
def told_where(folder: Path) -> Iterator[None]:
    """Name the folder in the error of a full disk, which names the file only where it could not be opened."""
    try:
        yield
    except OSError as error:
        if error.errno in ERRNOS:
            raise _no_room(folder) from error
        raise


def check_room(folder: Path, failure: Failure) -> None:
    """Look for the signs of a full disk after a launch has failed.

    Raises:
        OSError: that is what it failed of, as far as can be told; it names the folder that `folder` is in.
    """
    if says_no_room(failure.reason) or says_no_room(failure.stderr_tail):
        raise _no_room(folder.parent, f" ({failure.in_words})")
    if failure.exit_code in (EXIT_NO_ROOM, EXIT_NOT_FLUSHED) or not _has_room(folder):
        raise _no_room(folder.parent)


def _no_room(folder: Path, more: str = "") -> OSError:
    words = f"no space left on device for the files of a launch{more}; TMPDIR names the folder that they are in"
    return OSError(errno.ENOSPC, words, str(folder))


def _has_room(folder: Path) -> bool:
    probe = folder / "room"
    try:
        with probe.open("wb") as file:
            file.write(bytes(ROOM_NEEDED_B))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno not in ERRNOS
    finally:
        probe.unlink(missing_ok=True)
    return True
