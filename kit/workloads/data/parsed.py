"""Samples kept as arrays beside a file that takes long to read, so that a member starts without reading it again."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from stat import S_IWUSR
from zipfile import BadZipFile

import numpy as np

from kit.profile.atomic import write_atomically
from kit.workloads.data.dataset import Samples

# What is raised by a file that is not there, or that is damaged beyond what its checksums tell.
_UNUSABLE = (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error)


def parsed(path: Path, read: Callable[[], Samples]) -> Samples:
    """Return the samples at `path`; where they are not, `read` them and put them there if the folder is writable.

    `path` is named by the content that is read, so that another content has another name.
    """
    with suppress(*_UNUSABLE), np.load(path) as arrays:
        if arrays.zip.testzip() is None:  # NumPy would read a damaged header before its checksum
            return Samples(arrays["inputs"], arrays["targets"])
    samples = read()
    with suppress(OSError):
        # Nothing stops root from writing into a folder that is marked read-only.
        if path.parent.stat().st_mode & S_IWUSR:
            content = BytesIO()
            np.savez(content, **samples._asdict())
            write_atomically(path, content.getvalue())
    return samples
