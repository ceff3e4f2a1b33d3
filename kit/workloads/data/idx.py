"""A strict reader of IDX, the format MNIST comes in.

    byte 0-1   0
    byte 2     data type: 0x08 is unsigned byte, the only one read here
    byte 3     number of dimensions
    4 each     the dimensions, big-endian unsigned
    the rest   the elements, last dimension fastest, and nothing after them

Source: "The IDX file format" at the foot of http://yann.lecun.com/exdb/mnist/.
"""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

from kit.workloads.data.errors import DataError

_UNSIGNED_BYTE = 0x08
_MAGIC_B = 4
_DIMENSION_B = 4


def read_idx(content: bytes, source: str, dimensions: int) -> NDArray[np.uint8]:
    """Read `content` as an IDX array of unsigned bytes with exactly `dimensions` dimensions.

    Args:
        content: a whole IDX file, uncompressed.
        source: what to call it in an error, usually its path.
        dimensions: 3 for images (count, rows, columns), 1 for labels.

    Returns:
        A read-only view of `content`, uint8.

    Raises:
        DataError: where `content` is anything else, by even one byte.
    """
    magic = bytes((0, 0, _UNSIGNED_BYTE, dimensions))
    if content[:_MAGIC_B] != magic:
        raise _not_idx(source, f"it to begin with {magic.hex(' ')}", content[:_MAGIC_B].hex(" ") or "nothing")
    header_b = _MAGIC_B + dimensions * _DIMENSION_B
    if len(content) < header_b:
        raise _not_idx(source, f"a header of {header_b} bytes", f"{len(content)} bytes in all")
    shape: tuple[int, ...] = struct.unpack(f">{dimensions}I", content[_MAGIC_B:header_b])
    if 0 in shape:
        raise _not_idx(source, "dimensions of at least 1", str(shape))
    expected_b = header_b + math.prod(shape)
    if len(content) != expected_b:
        raise _not_idx(source, f"{expected_b} bytes for dimensions {shape}", f"{len(content)} bytes")
    return np.frombuffer(content, np.uint8, offset=header_b).reshape(shape)


def _not_idx(source: str, expected: str, found: str) -> DataError:
    return DataError(
        f"{source}: not the IDX file it should be: expected {expected}, found {found}; "
        "delete it and run again to download it anew"
    )
