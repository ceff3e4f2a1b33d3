"""Which data a run gets: the real set, synthetic data that says why, or one line of error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kit.workloads.catalog import DATASETS
from kit.workloads.data.choice import Resolved, dataset, ensure
from kit.workloads.data.dataset import SPLITS
from kit.workloads.data.files import DataError, DataUnavailableError
from kit.workloads.datasets.mnist import MNIST

NAMES = [file.name for split in SPLITS for file in MNIST.files[split]]
LABELS = MNIST.files["test"][1]


@pytest.fixture
def empty(tmp_path, monkeypatch) -> Path:
    """KIT_DATA with no MNIST in it."""
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    return tmp_path / "mnist"


@pytest.fixture
def linked(empty, mnist_dir) -> Path:
    """KIT_DATA with links to the real files, for a test to spoil one of them."""
    empty.mkdir()
    for name in NAMES:
        (empty / name).symlink_to(mnist_dir / "mnist" / name)
    return empty


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("split", SPLITS)
def test_a_data_set_is_what_it_says(name, split, mnist_dir, monkeypatch):
    monkeypatch.setenv("KIT_DATA", str(mnist_dir))
    for data in (dataset(name, name), dataset("synthetic", name)):
        if data.missing():
            pytest.skip(f"needs {name} in {mnist_dir}")
        inputs, targets = data.load(split)
        assert inputs.shape == (data.samples(split), *data.sample_shape) and inputs.dtype == np.dtype(data.dtype)
        assert targets.shape == (data.samples(split),)
        assert set(np.unique(targets)) == set(range(data.classes))


def test_mnist_is_mnist(real_mnist):
    images, labels = MNIST.load("test")
    assert labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    # Digits of each class in the test split, as published with the set.
    assert np.bincount(labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    images, labels = MNIST.load("train")
    assert images.mean() / 255 == pytest.approx(0.1307, abs=1e-4)  # the mean that everybody normalizes by
    assert labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]


def test_a_folder_with_the_files_is_never_written(linked):
    linked.chmod(0o555)
    before = linked.stat().st_mtime_ns
    assert ensure("auto", "mnist") == Resolved("mnist", None)
    assert linked.stat().st_mtime_ns == before and len(list(linked.iterdir())) == 4
    linked.chmod(0o755)


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
def test_a_broken_file_is_an_error_under_auto_too(linked, choice):
    name = NAMES[-1]
    archive = (linked / name).read_bytes()
    (linked / name).unlink()
    (linked / name).write_bytes(archive[: len(archive) // 2])
    with pytest.raises(DataError, match="truncated") as caught:
        ensure(choice, "mnist")
    assert not isinstance(caught.value, DataUnavailableError)
    assert str(caught.value).startswith(str(linked / name))


def test_what_is_missing_is_downloaded_once(linked, monkeypatch, serve):
    mirror = serve({LABELS.name: (linked / LABELS.name).read_bytes()})
    monkeypatch.setitem(DATASETS, "mnist", replace(MNIST, mirrors=(mirror.url,)))
    (linked / LABELS.name).unlink()
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
