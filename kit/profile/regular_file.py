"""Read a file that a user named, if it is one: a pipe would block, a device has no end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def open_regular(path: Path, flags: int) -> int:
    """Descriptor of `path`, opened with `flags`; OSError where it is no regular file or cannot be opened."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return descriptor


def read_regular(path: Path) -> bytes:
    """Contents of `path`; OSError where it is no regular file or cannot be read."""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        return file.read()
