from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.workloads.data.errors import DataError
from kit.workloads.data.known_file import KnownFile

CONTENT = np.random.default_rng(0).bytes(4000)
KNOWN = KnownFile("known.gz", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
ARCHIVE = gzip.compress(CONTENT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "known.gz"


def refused(path: Path, archive: bytes) -> str:
    path.write_bytes(archive)
    with pytest.raises(DataError) as caught:
        KNOWN.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: expected ") and "found" in message and "\n" not in message
    assert message.endswith("delete it and run again to download it anew")
    assert path.read_bytes() == archive  # the user's file is the user's to delete
    return message


@pytest.mark.parametrize("level", [0, 1, 9])
def test_the_content_counts_and_not_the_archive(path, level):
    path.write_bytes(gzip.compress(CONTENT, level))
    assert KNOWN.read(path) == CONTENT


def test_truncated(path):
    assert "truncated" in refused(path, ARCHIVE[: len(ARCHIVE) // 2])


@pytest.mark.parametrize("archive", [b"<html>504</html>", CONTENT], ids=["a web page", "not compressed"])
def test_not_gzip(path, archive):
    assert "a corrupt one (Not a gzipped file" in refused(path, archive)


def test_a_bit_flipped_on_disk(path):
    damaged = bytearray(ARCHIVE)
    damaged[len(ARCHIVE) // 2] ^= 1
    refused(path, bytes(damaged))


def test_wrong_content_of_the_right_size(path):
    other = bytes(len(CONTENT))
    assert f"SHA-256 {KNOWN.sha256} unpacked, found {hashlib.sha256(other).hexdigest()}" in refused(
        path, gzip.compress(other)
    )


def test_too_short(path):
    assert "expected 4000 bytes unpacked, found 3999" in refused(path, gzip.compress(CONTENT[:-1]))


def test_far_too_long_is_refused_before_it_is_all_unpacked(path):
    assert "expected 4000 bytes unpacked, found more than 4000" in refused(path, gzip.compress(bytes(50_000_000), 1))


def test_empty(path):
    refused(path, b"")


@given(st.binary(max_size=200))
def test_no_bytes_crash_it(tmp_path_factory, archive):
    refused(tmp_path_factory.getbasetemp() / "any.gz", archive)


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir], ids=["missing", "a folder"])
def test_a_file_that_cannot_be_read(path, make):
    make(path)
    with pytest.raises(DataError, match=r"known\.gz: expected a gzip file that can be read, found: .*KIT_DATA"):
        KNOWN.read(path)
