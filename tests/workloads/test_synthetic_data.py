from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from kit.workloads.data.synthetic import synthetic
from kit.workloads.datasets.mnist import MNIST
from kit.workloads.datasets.uci_har import UCI_HAR

# Signals in floats, an axis that no block divides.
SIGNALS = replace(UCI_HAR, sizes={"train": 701, "test": 303})


@pytest.mark.parametrize("of", [MNIST, SIGNALS], ids=["images", "signals"])
def test_classes_are_even_and_can_be_learnt(of):
    """The nearest class mean of 1000 training samples knows the test samples; a single value of them does not."""
    (inputs, targets), (test, test_targets) = (synthetic(of).load(split) for split in ("train", "test"))
    shares = np.bincount(targets, minlength=of.classes) / len(targets)
    assert shares == pytest.approx([1 / of.classes] * of.classes, abs=0.03)
    few, test = (array.reshape(len(array), -1).astype(np.float32) for array in (inputs[:1000], test[:2000]))
    means = np.stack([few[targets[:1000] == label].mean(axis=0) for label in range(of.classes)])
    scores = test @ means.T - (means**2).sum(axis=1) / 2
    assert (scores.argmax(axis=1) == test_targets[:2000]).mean() > 0.95
    by_one_value = np.abs(test[:, 400, None] - means[:, 400]).argmin(axis=1)
    assert (by_one_value == test_targets[:2000]).mean() < 0.5


def test_the_same_bytes_on_every_machine():
    images, labels = synthetic(MNIST).load("test")
    sha256 = hashlib.sha256(labels.tobytes() + images.tobytes()).hexdigest()
    assert sha256 == "d3272e071051f5305bc466128e852f20b9ba9fa20c887ad312421f75a4013b83"
