from __future__ import annotations

import hashlib

import numpy as np
import pytest

from kit.workloads.data.dataset import Dataset
from kit.workloads.data.synthetic import synthetic
from kit.workloads.datasets.mnist import MNIST

# Shaped as UCI-HAR: signals in floats, an axis that no block divides.
SIGNALS = Dataset(
    name="signals",
    sample_shape=(128, 9),
    dtype="float32",
    classes=6,
    sizes={"train": 701, "test": 303},
    files={"train": (), "test": ()},
    read=lambda split, contents: None,
)


@pytest.fixture(scope="module")
def splits():
    return synthetic(MNIST).load("train"), synthetic(MNIST).load("test")


def test_ten_classes_about_evenly(splits):
    for _, labels in splits:
        shares = np.bincount(labels, minlength=10) / len(labels)
        assert len(shares) == 10 and shares.min() > 0.08 and shares.max() < 0.12


def test_it_can_be_learnt(splits):
    """The nearest class mean of 1000 training images knows the test images; one pixel of them does not."""
    (train_images, train_labels), (test_images, test_labels) = splits
    few, few_labels = train_images[:1000].reshape(1000, -1).astype(np.float32), train_labels[:1000]
    means = np.stack([few[few_labels == label].mean(axis=0) for label in range(10)])
    test = test_images[:2000].reshape(2000, -1).astype(np.float32)
    scores = test @ means.T - (means**2).sum(axis=1) / 2
    assert (scores.argmax(axis=1) == test_labels[:2000]).mean() > 0.95
    one_pixel = np.abs(test[:, 400, None] - means[:, 400]).argmin(axis=1)
    assert (one_pixel == test_labels[:2000]).mean() < 0.5


def test_the_same_bytes_on_every_machine(splits):
    (_, _), (images, labels) = splits
    again, _ = synthetic(MNIST).load("test")
    assert again.tobytes() == images.tobytes()
    assert (
        hashlib.sha256(labels.tobytes() + images.tobytes()).hexdigest()
        == "d3272e071051f5305bc466128e852f20b9ba9fa20c887ad312421f75a4013b83"
    )


def test_floats_are_as_learnable():
    data = synthetic(SIGNALS)
    (inputs, targets), (test, test_targets) = data.load("train"), data.load("test")
    assert inputs.shape == (701, 128, 9) and test.shape == (303, 128, 9) and set(targets) == set(range(6))
    assert inputs.dtype == np.float32 and abs(inputs.mean()) < 0.1 and 0.5 < inputs.std() < 1.5
    means = np.stack([inputs[targets == label].mean(axis=0).ravel() for label in range(6)])
    scores = test.reshape(303, -1) @ means.T - (means**2).sum(axis=1) / 2
    assert (scores.argmax(axis=1) == test_targets).mean() > 0.95
