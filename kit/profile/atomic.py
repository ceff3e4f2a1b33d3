"""Write a file so that a reader, or a power cut, finds the old one or the new one and never a part."""

from __future__ import annotations

import fcntl
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Short, and not the file's own name: that may be as long as the file system allows.
TEMPORARY_PREFIX = ".kit-"
TEMPORARY_SUFFIX = ".part"


def write_atomically(path: Path, data: bytes) -> None:
    """Write to a temporary file in the same folder, flush it to the disk, and rename it into place."""
    with _temporary_beside(path) as (descriptor, temporary):
        _fill(descriptor, data)
        temporary.replace(path)
        os.close(descriptor)
    sync_folder(path.parent)


def create_atomically(path: Path, data: bytes) -> int:
    """Create `path`, with `data` or not at all; gives a descriptor that appends to it.

    Raises:
        FileExistsError: it is there.
        OSError: it cannot be written; nothing is left behind.
    """
    with _temporary_beside(path) as (descriptor, temporary):
        _fill(descriptor, data)
        _link(temporary, path)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return descriptor


def sync_folder(folder: Path) -> None:
    """Flush the folder's own entries, so that a rename survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def current_umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def _temporary_beside(path: Path) -> Iterator[tuple[int, Path]]:
    """A locked temporary file in the folder of `path`; closed and removed where the body fails."""
    prefix = f"{TEMPORARY_PREFIX}{zlib.crc32(os.fsencode(path.name)):08x}-"
    _remove_leftovers(path.parent, prefix)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=TEMPORARY_SUFFIX)
    temporary = Path(name)
    try:
        _locks(descriptor)
        yield descriptor, temporary
    except BaseException:
        temporary.unlink(missing_ok=True)
        with suppress(OSError):
            os.close(descriptor)
        raise


def _remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove what writers of the same file left behind when they were killed: files that nobody has locked."""
    for leftover in folder.glob(f"{prefix}*{TEMPORARY_SUFFIX}"):
        with suppress(OSError):
            descriptor = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if _locks(descriptor):
                    leftover.unlink()
            finally:
                os.close(descriptor)


def _locks(descriptor: int) -> bool:
    """Whether nobody else has it locked; it is locked then. On a file system without locks: no."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _fill(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    os.fchmod(descriptor, 0o666 & ~current_umask())
    os.fsync(descriptor)


def _link(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links (FAT).
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        temporary.rename(path)
