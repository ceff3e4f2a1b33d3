"""Write a file so that a reader, or a power cut, finds the old one or the new one and never a part."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

# Short, and not the file's own name: that may be as long as the file system allows.
TEMPORARY_PREFIX = ".kit-"


def write_atomically(path: Path, data: bytes) -> None:
    """Write to a temporary file in the same folder, flush it to the disk, and rename it into place."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY_PREFIX, suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~current_umask())
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


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
