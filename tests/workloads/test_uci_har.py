"""UCI-HAR: windows of nine signals from a zip archive, as it is published or as a user packed it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zipfile import ZIP_STORED

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from uci_har_archive import ROWS, packed, signal, tables

from kit.suites.plan import plan_cells
from kit.suites.suite import Axes, Suite, SuiteError
from kit.workloads.datasets import SPLITS, UCI_HAR, UCI_HAR_ZIP, DataError, DataUnavailableError, member
from kit.workloads.workload_catalog import DATASETS, Resolved, resolve_data

NOBODY_LISTENS = "http://127.0.0.1:1/"
LABELS = "UCI HAR Dataset/test/y_test.txt"
GYRO = "UCI HAR Dataset/test/Inertial Signals/body_gyro_y_test.txt"


def nested(archive: bytes) -> bytes:
    return packed({"UCI HAR Dataset.zip": archive, "UCI HAR Dataset.names": b"about"})


TINY = tables()


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The data set's own folder in KIT_DATA, empty."""
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    (tmp_path / "uci_har").mkdir()
    return tmp_path / "uci_har"


@pytest.fixture
def plant(folder) -> Callable[[bytes], Path]:
    def put(archive: bytes) -> Path:
        (folder / "uci_har.zip").write_bytes(archive)
        return folder / "uci_har.zip"

    return put


def knowing(archive: bytes, *mirrors: str):
    """The data set, if `archive` were the original."""
    known = UCI_HAR_ZIP._replace(known_sha256=(hashlib.sha256(archive).hexdigest(),))
    return replace(UCI_HAR, files=dict.fromkeys(SPLITS, (known,)), mirrors=mirrors)


WHOLE = {"zip": packed(TINY), "stored": packed(TINY, ZIP_STORED), "in zip": nested(packed(TINY))}


@pytest.mark.parametrize("archive", WHOLE.values(), ids=WHOLE)
def test_each_number_is_where_it_belongs(plant, archive):
    plant(archive)
    for split, rows in ROWS.items():
        inputs, targets = UCI_HAR.load(split)
        assert UCI_HAR.samples(split) == rows and targets.tolist() == list(range(rows))
        expected = np.stack([-signal(number, rows) for number in range(9)], axis=-1)
        np.testing.assert_allclose(inputs, expected, rtol=1e-6)


def test_the_archive_may_lie_beside_its_folder(plant, folder):
    plant(packed(TINY)).rename(folder.parent / "uci_har.zip")
    assert UCI_HAR.missing() == [] and resolve_data("auto", "uci_har") == Resolved("uci_har")
    assert len(UCI_HAR.load("test").targets) == 3


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        (LABELS, None, "the archive has no"),
        (GYRO, TINY[GYRO].splitlines(keepends=True)[0], "1 rows, but .* 3"),
        (LABELS, b"1\n2\n", "3 rows, but .* 2"),
        (GYRO, TINY[GYRO].replace(b"-", b"7 -", 1), "128 numbers"),
        (GYRO, b" 1 2 3\n" * 3, "128 numbers"),
        (GYRO, b"", "empty"),
        (GYRO, TINY[GYRO].replace(TINY[GYRO][:16], b"nan", 1), "not a number"),
        (LABELS, b"1\n7\n2\n", "label 7"),
        (LABELS, b"1\n2.5\n2\n", "rows of 1 number"),
    ],
)
def test_files_that_do_not_fit_are_one_line(plant, name, content, line):
    files = TINY | {name: content}
    path = plant(packed({name: content for name, content in files.items() if content is not None}))
    message = refused(resolve_data, "auto", "uci_har")
    assert message.startswith(str(path)) and name in message and re.search(line, message)
    assert message.endswith("delete it and run again to download it anew")


def flipped(archive: bytes) -> bytes:
    """A bit of the first member's content is another."""
    return archive[:70] + bytes([archive[70] ^ 1]) + archive[71:]


DAMAGED = {
    "truncated": packed(TINY)[:5000],
    "empty": b"",
    "a page": b"<html>Please log in</html>",
    "damaged": flipped(packed(TINY)),
    "truncated in a zip": nested(packed(TINY)[:5000]),
}


@pytest.mark.parametrize("archive", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_archive_is_one_line(plant, archive):
    path = plant(archive)
    message = refused(resolve_data, "auto", "uci_har")
    assert message.startswith(str(path)) and "truncated, damaged or not a zip" in message
    assert UCI_HAR.samples("train") == 7352  # a plan is made as if it were not there


@given(st.binary(max_size=200), st.integers(0, 3000))
def test_no_bytes_crash_it(tmp_path_factory, noise, at):
    path = tmp_path_factory.getbasetemp() / "any.zip"
    archive = packed({LABELS: b"1\n" * 50})
    for content in (noise, archive[:at] + noise + archive[at + len(noise) :]):
        path.write_bytes(content)
        try:
            assert member(UCI_HAR_ZIP.read(path), LABELS, 1 << 20) in (b"1\n" * 50, None)
        except DataError as error:
            assert "\n" not in str(error)


def test_a_plan_counts_the_windows_that_are_there(plant, monkeypatch):
    monkeypatch.setitem(DATASETS, "mnist", UCI_HAR)
    suite = Suite(name="s", title="s", cells=Axes(workloads=["mlp"], backends=["torch"], batches=[7]))
    assert plan_cells(suite)  # nothing is there: the published sizes
    plant(packed(TINY))
    with pytest.raises(SuiteError, match="batch 7 exceeds the 6 samples"):
        plan_cells(suite)


def test_what_was_read_is_kept_and_a_damaged_copy_is_not_believed(plant, folder):
    plant(packed(TINY))
    first = UCI_HAR.load("test")
    (kept,) = folder.glob("uci_har-test-*.npz")
    whole = kept.read_bytes()
    np.savez(kept, inputs=first.inputs + 1, targets=first.targets)  # shows that it is used
    assert (UCI_HAR.load("test").inputs == first.inputs + 1).all()
    for damaged in (whole[:-100], flipped(whole), b"", b"garbage"):
        kept.write_bytes(damaged)
        assert (UCI_HAR.load("test").inputs == first.inputs).all()
        assert kept.read_bytes() == whole
    plant(packed(TINY | {LABELS: b"6\n5\n4\n"}))
    assert UCI_HAR.load("test").targets.tolist() == [5, 4, 3], "that of another archive is not used"


def test_a_folder_marked_read_only_is_not_written(plant, folder):
    plant(packed(TINY))
    folder.chmod(0o555)
    assert len(UCI_HAR.load("test").targets) == 3
    folder.chmod(0o755)
    assert [path.name for path in folder.iterdir()] == ["uci_har.zip"]


@pytest.mark.parametrize("wrap", [bytes, nested], ids=["zip", "in zip"])
def test_a_download_is_kept_out_of_the_zip_around_it(folder, serve, monkeypatch, wrap):
    archive = packed(TINY)
    mirror = serve({"a+name.zip": wrap(archive)})
    monkeypatch.setitem(DATASETS, "uci_har", knowing(archive, NOBODY_LISTENS, f"{mirror.url}a+name.zip"))
    assert resolve_data("uci_har", "uci_har") == Resolved("uci_har")
    assert (folder / "uci_har.zip").read_bytes() == archive and mirror.asked == ["a+name.zip"]


def test_a_download_of_unknown_content_is_refused_and_a_file_of_it_is_not(folder, serve, monkeypatch):
    archive, other = packed(TINY), packed(TINY | {LABELS: b"6\n5\n4\n"})
    data = knowing(archive, serve({"uci_har.zip": other}).url)
    monkeypatch.setitem(DATASETS, "uci_har", data)
    with pytest.raises(DataUnavailableError, match="wrong content"):
        resolve_data("uci_har", "uci_har")
    assert list(folder.iterdir()) == []
    (folder / "uci_har.zip").write_bytes(other)
    assert resolve_data("uci_har", "uci_har").name == "uci_har" and not data.checksum_known()
    (folder / "uci_har.zip").write_bytes(archive)
    assert data.checksum_known()


def test_an_archive_that_expands_without_a_limit_is_one_line(plant, monkeypatch):
    small = UCI_HAR_ZIP._replace(content_max_b=1 << 16)
    monkeypatch.setattr("kit.workloads.datasets.UCI_HAR_ZIP", small)
    monkeypatch.setitem(DATASETS, "uci_har", replace(UCI_HAR, files=dict.fromkeys(UCI_HAR.files, (small,))))
    for archive in (packed(TINY | {LABELS: b"1\n" * (1 << 16)}), nested(packed(TINY) + bytes(1 << 17))):
        path = plant(archive)
        message = refused(resolve_data, "auto", "uci_har")
        assert message.startswith(str(path)) and "65,536 bytes" in message
