from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kit.workloads.data.errors import DataError
from kit.workloads.data.idx import read_idx

IMAGES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=3, max_side=9)))
def test_what_was_written_is_read(array):
    read = read_idx(idx(array), "x", array.ndim)
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, array)


def refused(content: bytes, dimensions: int = 3) -> str:
    with pytest.raises(DataError) as caught:
        read_idx(content, "some/file.gz", dimensions)
    message = str(caught.value)
    assert message.startswith("some/file.gz: ") and "\n" not in message
    assert "expected" in message and "found" in message and "delete it" in message
    return message


@given(st.binary(max_size=64), st.integers(1, 3))
def test_anything_else_is_refused_and_nothing_crashes(content, dimensions):
    try:
        array = read_idx(content, "x", dimensions)
    except DataError:
        return
    assert idx(array) == content


@given(st.lists(st.integers(0, 2**32 - 1), min_size=3, max_size=3), st.binary(max_size=32))
def test_dimensions_that_lie_are_refused(shape, body):
    content = struct.pack(">4B3I", 0, 0, 8, 3, *shape) + body
    if len(body) != shape[0] * shape[1] * shape[2] or not body:
        refused(content)


@given(st.integers(0, len(idx(IMAGES)) - 1))
def test_every_truncation_is_refused(length):
    refused(idx(IMAGES)[:length])


def test_each_fault_is_named():
    good = idx(IMAGES)
    assert "begin with 00 00 08 03, found nothing" in refused(b"")
    assert "found 1f 8b 08 00" in refused(b"\x1f\x8b\x08\x00")
    assert "found 00 00 0d 03" in refused(good[:2] + b"\x0d" + good[3:])  # floats
    assert "begin with 00 00 08 01" in refused(good, dimensions=1)
    assert "a header of 16 bytes, found 9 bytes" in refused(good[:9])
    assert "40 bytes for dimensions (2, 3, 4), found 41 bytes" in refused(good + b"\0")
    assert "at least 1, found (0, 3, 4)" in refused(struct.pack(">4B3I", 0, 0, 8, 3, 0, 3, 4))
