"""A NumPy archive (.npz: a ZIP file of arrays) of step times, and a bound on what it inflates to.

A few kilobytes of ZIP can inflate to terabytes. The writer leaves series that compress too well as they are, so that
the reader can refuse whatever would inflate further than a profile's archive does.
"""

from __future__ import annotations

import io
import zipfile
from array import array
from collections.abc import Collection

import msgspec
import numpy as np
from numpy.typing import NDArray

# Inflated over packed. Measured step times reach 2.3 (34,841 steps, nanoseconds); a counting sequence 6, zeros 1000.
INFLATION_MAX = 4
# Steps turned into JSON at a time.
CHUNK = 4096
# Around each array, generously: its header, and its entries in the ZIP file and in that file's directory.
AROUND_ARRAY_B = 1024
BYTES_PER_STEP = 8
# Begins an entry of the ZIP file's directory.
DIRECTORY_ENTRY = b"PK\x01\x02"
# Packed bytes may by chance look like such entries.
CHANCE_ENTRIES = 16
# The others inflate without a bound.
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

Steps = NDArray[np.int64]


class StepArchiveError(Exception):
    """Bytes that are no archive of step times, and why, in one line."""


def largest_archive_b(launches: int, steps: int) -> int:
    """Bytes of an archive of so many series with so many steps in all, at most."""
    return AROUND_ARRAY_B * (launches + 1) + BYTES_PER_STEP * max(steps, 0)


def pack(series: dict[str, Steps]) -> bytes:
    """Compressed, unless a reader would refuse to inflate it."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **series)  # type: ignore[arg-type]
    with zipfile.ZipFile(packed) as archive:
        inflated_b = sum(entry.file_size for entry in archive.infolist())
    if inflated_b <= INFLATION_MAX * len(packed.getbuffer()):
        return packed.getvalue()
    plain = io.BytesIO()
    np.savez(plain, **series)  # type: ignore[arg-type]
    return plain.getvalue()


def unpack(data: bytes, names: Collection[str]) -> dict[str, Steps]:
    """The arrays that `names` has.

    Raises:
        StepArchiveError: no archive of one-dimensional int64 arrays, or it would inflate too far.
    """
    if data.count(DIRECTORY_ENTRY) > len(names) + CHANCE_ENTRIES:
        raise StepArchiveError(f"it has more entries than its profile has launches ({len(names)})")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            wanted = {name: entries[name] for name in names if name in entries}
            _check_sizes(wanted.values(), len(data))
            return {name: _series(archive, entry, name) for name, entry in wanted.items()}
    except StepArchiveError:
        raise
    # What NumPy, zipfile and zlib raise on bytes that are not theirs is not listed anywhere.
    except Exception as error:
        raise StepArchiveError(f"not a NumPy archive: {' '.join(str(error).split())}") from None


def json_of_steps(value: object) -> msgspec.Raw:
    """As `enc_hook` of msgspec: a series as a JSON list."""
    if not isinstance(value, np.ndarray | array):
        raise NotImplementedError(f"{type(value).__name__} is not for JSON")
    chunks = (value[start : start + CHUNK].tolist() for start in range(0, len(value), CHUNK))
    return msgspec.Raw(b"[%s]" % b",".join(msgspec.json.encode(chunk)[1:-1] for chunk in chunks))


def _check_sizes(entries: Collection[zipfile.ZipInfo], packed_b: int) -> None:
    if any(entry.compress_type not in COMPRESSIONS for entry in entries):
        raise StepArchiveError("compressed in a way that `kit run` never uses")
    inflated_b = sum(entry.file_size for entry in entries)
    if inflated_b > INFLATION_MAX * packed_b:
        raise StepArchiveError(
            f"its {packed_b:,} bytes would inflate to {inflated_b:,}, more than {INFLATION_MAX} times as many"
        )


def _series(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> Steps:
    with archive.open(entry) as file:
        # Read to the size that was checked: without it, zipfile inflates whatever is there.
        content = io.BytesIO(file.read(entry.file_size))
    version = np.lib.format.read_magic(content)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(content)
    if dtype != np.int64 or len(shape) != 1:
        raise StepArchiveError(f"{name} is {len(shape)}-dimensional {dtype}, not a list of int64")
    series: Steps = np.frombuffer(content.getbuffer(), np.int64, offset=content.tell())
    if series.size != shape[0]:
        raise StepArchiveError(f"{name} has {series.size} steps and its header says {shape[0]}")
    return series
