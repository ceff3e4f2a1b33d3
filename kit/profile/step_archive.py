"""The archive of raw steps, read by the counts that its profile has, so that nothing larger is ever unpacked.

It is NumPy's: a zip with an array of names, and an array of 64-bit integers for each. Only what `kit run` writes is
read: NumPy's own reader would take headers of any form and arrays of any size.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Steps: TypeAlias = NDArray[np.int64]

NAMES = "names.npy"
# NumPy's header of such an array has 128 bytes.
HEADER_MAX_B = 256
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?s:..)\{'descr': '<(i8|U\d{1,5})', 'fortran_order': False, 'shape': \((\d{1,15}),\), \} *\n"
)
# An entry of a zip, twice: in front of the data and in the list at the end.
ENTRY_B = 512
# What deflate adds to bytes that it cannot make smaller is 5 in 16,383; a part of a thousandth is more.
DEFLATE_PART = 1024
CODE_POINT_B, STEP_B = 4, 8


class ArchiveError(ValueError):
    """It is no archive of these steps."""


def most_bytes(counts: Mapping[str, range]) -> int:
    """Return how large an archive of so many steps can be."""
    whole_b = sum(STEP_B * count[-1] for count in counts.values()) + _names_b(counts)
    return whole_b + whole_b // DEFLATE_PART + (HEADER_MAX_B + ENTRY_B) * (len(counts) + 2)


def unpack(data: bytes, counts: Mapping[str, range], most_ns: Mapping[str, int]) -> dict[str, Steps]:
    """Return the steps of each launch.

    Args:
        data: the archive.
        counts: how many steps each launch may have, by its name.
        most_ns: how long a step of each launch may be.

    Raises:
        ArchiveError: it is no archive, is damaged, or has other steps; the message says which.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {member.filename: member for member in archive.infolist()}
            if members.keys() != {NAMES, *(f"a{index}.npy" for index in range(len(counts)))}:
                raise ArchiveError(f"it has not the {len(counts)} launches of its profile")
            names = [str(name) for name in _array(archive, members[NAMES], _names_b(counts), "U")]
            if sorted(names) != sorted(counts):
                raise ArchiveError("its launches are not those of its profile")
            by_launch = {}
            for index, name in enumerate(names):
                most_b = STEP_B * counts[name][-1]
                steps: Steps = _array(archive, members[f"a{index}.npy"], most_b, "i8")  # type: ignore[assignment]
                if steps.size not in counts[name]:
                    raise ArchiveError(f"{name} has {steps.size} steps, and its profile says {counts[name][-1]}")
                if steps.size and not (steps.min() >= 0 and steps.max() <= most_ns[name]):
                    odd_ns = steps.min() if steps.min() < 0 else steps.max()
                    raise ArchiveError(f"{name} has a step of {odd_ns} ns, and its phases and blocks are shorter")
                by_launch[name] = steps
    # A zip raises these where it is damaged, encrypted or of another kind.
    except (
        OSError, EOFError, RuntimeError, ValueError, OverflowError, struct.error, zipfile.BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        raise ArchiveError(str(error)) from None
    return by_launch


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most_b: int, kind: str) -> NDArray[np.generic]:
    """Return one array of at most so many bytes."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError(f"{member.filename} is packed in another way")
    if member.file_size > most_b + HEADER_MAX_B:
        raise ArchiveError(f"{member.filename} has {member.file_size:,} bytes, and the limit is {most_b:,}")
    # It is never unpacked further than it says.
    with archive.open(member) as file:
        content = file.read(member.file_size + 1)
    header = _HEADER.match(content, 0, HEADER_MAX_B)
    if header is None or not header[1].decode().startswith(kind) or header[1] == b"U0":
        raise ArchiveError(f"{member.filename} is not an array that `kit run` writes")
    dtype, count = np.dtype(f"<{header[1].decode()}"), int(header[2])
    if len(content) != header.end() + count * dtype.itemsize:
        raise ArchiveError(f"{member.filename} is not as long as it says")
    return np.frombuffer(content, dtype, count, header.end())


def _names_b(counts: Mapping[str, range]) -> int:
    """Return how many bytes the array of names has: each as many as the longest."""
    return CODE_POINT_B * len(counts) * max(map(len, counts), default=0)
