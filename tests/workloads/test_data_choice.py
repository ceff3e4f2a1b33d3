"""Which data a run gets: the real set, synthetic data that says why, or one line of error."""

from __future__ import annotations

import gzip
import hashlib
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kit.workloads.catalog import DATASETS
from kit.workloads.data.choice import Resolved, dataset, ensure
from kit.workloads.data.dataset import SPLITS
from kit.workloads.data.files import DataError, DataUnavailableError, KnownFile
from kit.workloads.datasets.mnist import MNIST

NAMES = [file.name for split in SPLITS for file in MNIST.files[split]]
LABELS = MNIST.files["test"][1]
ROWS = {"train": 60, "test": 30}


def idx(elements: np.ndarray) -> bytes:
    """An IDX file of unsigned bytes: type 8, the sides in big-endian order, then the elements."""
    return struct.pack(f">HBB{elements.ndim}I", 0, 8, elements.ndim, *elements.shape) + elements.tobytes()


def made_splits() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Images and labels from a seed; every class is among the labels."""
    generator = np.random.default_rng(0)
    return {
        split: (generator.integers(0, 256, (rows, 28, 28), np.uint8), np.arange(rows, dtype=np.uint8) % 10)
        for split, rows in ROWS.items()
    }


MADE = made_splits()


@pytest.fixture
def empty(tmp_path, monkeypatch) -> Path:
    """KIT_DATA with no MNIST in it."""
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    return tmp_path / "mnist"


@pytest.fixture
def made(empty, monkeypatch) -> Path:
    """KIT_DATA with files of MNIST's names and format, whose content is known, for a test to spoil one of them."""
    empty.mkdir()
    known = {}
    for split, arrays in MADE.items():
        contents = [idx(array) for array in arrays]
        names = [file.name for file in MNIST.files[split]]
        for name, content in zip(names, contents, strict=True):
            (empty / name).write_bytes(gzip.compress(content))
        known[split] = tuple(
            KnownFile(name, len(content), hashlib.sha256(content).hexdigest())
            for name, content in zip(names, contents, strict=True)
        )
    monkeypatch.setitem(DATASETS, "mnist", replace(MNIST, sizes=ROWS, files=known))
    return empty


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("split", SPLITS)
def test_synthetic_data_are_what_the_data_set_says(name, split):
    data = dataset("synthetic", name)
    inputs, targets = data.load(split)
    assert inputs.shape == (data.samples(split), *data.sample_shape) and inputs.dtype == np.dtype(data.dtype)
    assert targets.shape == (data.samples(split),)
    assert set(np.unique(targets)) == set(range(data.classes))


@pytest.mark.parametrize("split", SPLITS)
def test_each_image_and_label_is_where_it_belongs(made, split):
    for read, wrote in zip(DATASETS["mnist"].load(split), MADE[split], strict=True):
        np.testing.assert_array_equal(read, wrote, strict=True)


def test_a_folder_with_the_files_is_never_written(made):
    made.chmod(0o555)
    before = made.stat().st_mtime_ns
    assert ensure("auto", "mnist") == Resolved("mnist", None)
    assert made.stat().st_mtime_ns == before and len(list(made.iterdir())) == 4
    made.chmod(0o755)


def test_synthetic_asks_nobody(empty):
    assert ensure("synthetic", "mnist") == Resolved("synthetic", None)
    assert len(dataset("synthetic", "mnist").load("test").targets) == 10_000
    assert not empty.exists()


def test_auto_says_why_it_is_synthetic_and_a_name_is_an_error(empty):
    name, why = ensure("auto", "mnist")
    assert name == "synthetic" and why.code == "download_failed" and why.values["file"] == NAMES[0]
    assert not empty.exists()
    with pytest.raises(DataUnavailableError) as caught:
        ensure("mnist", "mnist")
    message = str(caught.value)
    assert "\n" not in message and message.endswith(f"into {empty} (KIT_DATA/mnist), or use --data synthetic")
    assert all(name in message for name in NAMES)


def test_another_data_set_is_refused_with_the_choices():
    with pytest.raises(DataError, match=r"'imagenet'.*choose from: .*mnist"):
        ensure("imagenet", "mnist")


@pytest.mark.parametrize("choice", ["mnist", "auto"])
def test_a_broken_file_is_an_error_under_auto_too(made, choice):
    name = NAMES[-1]
    archive = (made / name).read_bytes()
    (made / name).write_bytes(archive[: len(archive) // 2])
    with pytest.raises(DataError, match="truncated") as caught:
        ensure(choice, "mnist")
    assert not isinstance(caught.value, DataUnavailableError)
    assert str(caught.value).startswith(str(made / name))


def test_what_is_missing_is_downloaded_once(made, monkeypatch, serve):
    mirror = serve({LABELS.name: (made / LABELS.name).read_bytes()})
    monkeypatch.setitem(DATASETS, "mnist", replace(DATASETS["mnist"], mirrors=(mirror.url,)))
    (made / LABELS.name).unlink()
    assert ensure("auto", "mnist") == ensure("mnist", "mnist") == Resolved("mnist", None)
    assert mirror.asked == [LABELS.name]


@pytest.mark.parametrize("choice", ["auto", "mnist"])
def test_a_data_folder_that_is_set_and_not_there_is_an_error(tmp_path, monkeypatch, choice):
    (tmp_path / "file").touch()
    for set_to in (tmp_path / "nope", tmp_path / "file", tmp_path / "file" / "deeper"):
        monkeypatch.setenv("KIT_DATA", str(set_to))
        with pytest.raises(DataError, match=f"KIT_DATA is {set_to}") as caught:
            ensure(choice, "mnist")
        assert not isinstance(caught.value, DataUnavailableError)
    assert ensure("synthetic", "mnist").name == "synthetic"
