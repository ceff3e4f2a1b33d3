from __future__ import annotations

import hashlib

import numpy as np
import pytest

from kit.workloads.data.synthetic import prototypes, synthetic_split


@pytest.fixture(scope="module")
def splits():
    return synthetic_split("train"), synthetic_split("test")


def test_the_shapes_and_types_of_mnist(splits):
    (train_images, train_labels), (test_images, test_labels) = splits
    assert train_images.shape == (60_000, 28, 28) and train_labels.shape == (60_000,)
    assert test_images.shape == (10_000, 28, 28) and test_labels.shape == (10_000,)
    assert {array.dtype for array in (train_images, train_labels, test_images, test_labels)} == {np.dtype(np.uint8)}


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


def test_the_splits_share_classes_and_no_image(splits):
    (train_images, _), (test_images, _) = splits
    train = {image.tobytes() for image in train_images}
    assert len(train) == 60_000
    assert not any(image.tobytes() in train for image in test_images)


def test_prototypes_differ_in_blocks():
    lit = prototypes() // 64
    assert set(np.unique(lit)) == {0, 1}
    distances = [(lit[a] != lit[b]).sum() for a in range(10) for b in range(a)]
    assert min(distances) >= 10 * 16


def test_the_same_bytes_on_every_machine(splits):
    (_, _), (images, labels) = splits
    again, _ = synthetic_split("test")
    assert again.tobytes() == images.tobytes()
    assert (
        hashlib.sha256(labels.tobytes() + images.tobytes()).hexdigest()
        == "d3272e071051f5305bc466128e852f20b9ba9fa20c887ad312421f75a4013b83"
    )
