"""The folder of a launch: its files and all that the worker writes for a while; removed with it.

An engine that is killed cannot remove it. So it holds a lock in it, and the next engine removes the folders that nobody
holds, with whatever still runs for them.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kit.engines.leftovers import end_marked
from kit.engines.room import told_where

PREFIX = "steadykit-"
# Locked for as long as the engine lives; names the host, for a lock may not be seen from another.
OWNER = "owner"


@contextmanager
def launch_folder() -> Iterator[Path]:
    """A new folder, the engine's own.

    Raises:
        OSError: it cannot be made; it names where.
    """
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with told_where(folder.parent):
            owner = _owned(folder)
        try:
            yield folder
        finally:
            os.close(owner)


@functools.cache
def remove_abandoned(parent: Path) -> None:
    """Remove the folders in `parent` whose engine was killed, and end what still runs for them. Once a process."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            _remove_if_abandoned(folder)


def _owned(folder: Path) -> int:
    """Lock a file in it, which gets its name after that: no other engine finds it unlocked. Gives its descriptor."""
    unnamed = folder / f"{OWNER}.new"
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, _host())
        # A file system without locks: nobody will remove it.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unnamed.rename(folder / OWNER)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _remove_if_abandoned(folder: Path) -> None:
    if not _is_own(folder.lstat(), stat.S_ISDIR):
        return
    descriptor = os.open(folder / OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if _is_own(os.fstat(descriptor), stat.S_ISREG) and os.read(descriptor, 1 << 10) == _host():
            # Raises where its engine lives, or another one is at it.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            end_marked(folder)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def _is_own(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    return is_kind(found.st_mode) and found.st_uid == os.geteuid()


def _host() -> bytes:
    return os.uname().nodename.encode()
