"""Files: what they may be called, how they are replaced, and how those that others wrote are read.

A name that comes out of a profile, a suite or a journal is somebody else's text. Only `name_of` makes a file's name of
such a text, and only `inside` joins it to a folder that the user named. `write_atomically` replaces the file that it is
given and touches no other. `read_limited` reads regular files only, and never more bytes than its caller expects.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import uuid
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from kit.errors import KitError

# Linux limits a name to 255 bytes. The rest is for what stands around the text: a time, an id, an ending.
NAME_MAX = 150
_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+|^[.+-]+")
# Two texts that become alike without their odd characters differ in this many digits of their SHA-256.
_HASH_DIGITS = 8


def name_of(text: str) -> str:
    """Return a file's name for any text: the text itself where it can be one.

    Otherwise odd characters become `_`, and a part of the text's SHA-256 follows, so that two texts have two names.
    """
    fit = _UNFIT.sub("_", text)[:NAME_MAX]
    if fit == text and text:
        return text
    return f"{fit or '_'}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:_HASH_DIGITS]}"


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file below a folder that the user named.

    Raises:
        KitError: the name, or a link on its way, leads out of the folder.
    """
    path = folder / name
    if ".." in Path(name).parts or not path.resolve().is_relative_to(folder.resolve()):
        raise KitError(f"{path} leads out of {folder}; choose another folder")
    return path


def write_atomically(path: Path, data: bytes, *, replaces: bool = True, mode: int = 0o666) -> None:
    """Write a file so that a reader, or a power cut, finds the old one or the new one and never a part.

    Args:
        path: of the file.
        data: its content.
        replaces: a file that is there.
        mode: of a new file, less the process's mask.

    Raises:
        FileExistsError: a file is there, and this one `replaces` none.
        OSError: the disk is full, or the folder is gone; nothing is left behind.
    """
    temporary = path.with_name(f".kit-{uuid.uuid4().hex}.part")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replaces:
            temporary.replace(path)
        else:
            _rename_to_new(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    # The folder's own entries, so that the rename survives a power cut.
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_to_new(temporary: Path, path: Path) -> None:
    """Rename a file; FileExistsError where another one has the name, whenever it came."""
    try:
        os.link(temporary, path)
        temporary.unlink()
    except OSError:
        # Some network file systems have no links; there, a file that comes between these two lines is replaced.
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        temporary.replace(path)


def open_limited(path: Path, most_b: int) -> BinaryIO:
    """Open a regular file of at most `most_b` bytes to be read. It does not wait for a pipe or a device.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger; the message says which.
    """
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    try:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        if status.st_size > most_b:
            raise OSError(errno.EINVAL, f"it has {status.st_size:,} bytes, and the limit is {most_b:,}", str(path))
    except OSError:
        file.close()
        raise
    return file


def read_limited(path: Path, most_b: int) -> bytes:
    """Return the content of a regular file of at most `most_b` bytes.

    Raises:
        OSError: as `open_limited`.
    """
    with open_limited(path, most_b) as file:
        # Memory is taken for what is asked for. A file that grows while it is read stays within the limit, too.
        size_b = os.fstat(file.fileno()).st_size
        data = file.read(size_b + 1)
        if len(data) > size_b:
            data += file.read(most_b + 1 - len(data))
    if len(data) > most_b:
        raise OSError(errno.EINVAL, f"it has more than {most_b:,} bytes", str(path))
    return data
