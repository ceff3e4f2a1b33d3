"""Which data a run gets: the real set, synthetic data that says why, or one line of error."""

from __future__ import annotations

import gzip
import hashlib
import re
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from kit.workloads.catalog import DATASETS
from kit.workloads.data.choice import Resolved, dataset, resolve_data
from kit.workloads.data.dataset import SPLITS
from kit.workloads.data.files import KnownFile
from kit.workloads.datasets.mnist import MNIST

NAMES = [file.name for split in SPLITS for file in MNIST.files[split]]
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
        known[split] = ()
        for file, content in zip(MNIST.files[split], map(idx, arrays), strict=True):
            (empty / file.name).write_bytes(gzip.compress(content))
            known[split] += (KnownFile(file.name, len(content), hashlib.sha256(content).hexdigest()),)
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


def test_auto_says_why_it_is_synthetic_and_a_name_is_an_error(empty):
    name, why = resolve_data("auto", "mnist")
    assert name == "synthetic" and why.code == "download_failed" and why.values["file"] == NAMES[0]
    assert resolve_data("synthetic", "mnist") == Resolved("synthetic", None)
    assert not empty.exists()
    message = refused(resolve_data, "mnist", "mnist")
    assert message.endswith(f"into {empty} (KIT_DATA/mnist), or use --data synthetic")
    assert all(name in message for name in NAMES)


def test_another_data_set_is_refused_with_the_choices():
    assert re.search("'imagenet'.*choose from .*mnist", refused(resolve_data, "imagenet", "mnist"))
