"""Read a file that a user named, if it is one: a pipe would block, a device has no end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

# A profile takes 3 kB a launch. A file larger than this is something else, and reading it would fill the memory.
FILE_MAX_B = 512 << 20


def open_regular(path: Path, flags: int) -> int:
    """Descriptor of `path`, opened with `flags`; OSError where it is no regular file or cannot be opened."""
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        raise OSError(errno.EINVAL, "no file can have this name", str(path)) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return descriptor


def read_regular(path: Path, max_b: int = FILE_MAX_B) -> bytes:
    """Contents of `path`; OSError where it is no regular file, has more than `max_b` bytes or cannot be read."""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_b:
            raise OSError(errno.EFBIG, f"too large ({size:,} bytes; {max_b:,} at most)", str(path))
        # Files of the kernel's give no size, and some have no end.
        data = file.read(size + 1)
    if len(data) > size:
        raise OSError(errno.EINVAL, "it has more bytes than its size says, or grows while it is read", str(path))
    return data
