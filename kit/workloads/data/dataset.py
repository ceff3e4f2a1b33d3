"""The data a launch runs on: MNIST, or synthetic data that says it is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.profile.launch import DataChoice
from kit.workloads.data import mnist
from kit.workloads.data.errors import DataUnavailableError
from kit.workloads.data.split import SPLITS, Split
from kit.workloads.data.synthetic import synthetic_split

DataName = Literal["mnist", "synthetic"]


class Resolved(NamedTuple):
    """What a choice of data came to."""

    name: DataName
    note: str | None  # why synthetic, when "auto" fell back


@dataclass(frozen=True, slots=True)
class Dataset:
    """Images (samples, 28, 28) and labels (samples,), uint8. A split that was not asked for is None."""

    name: DataName
    note: str | None
    train_images: NDArray[np.uint8] | None = None
    train_labels: NDArray[np.uint8] | None = None
    test_images: NDArray[np.uint8] | None = None
    test_labels: NDArray[np.uint8] | None = None

    def split(self, split: Split) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Images and labels of a split that was asked for; raises ValueError where it was not."""
        images, labels = {
            "train": (self.train_images, self.train_labels),
            "test": (self.test_images, self.test_labels),
        }[split]
        if images is None or labels is None:
            raise ValueError(f"the {split} split was not loaded: ask `load` for it")
        return images, labels


def ensure(choice: DataChoice) -> Resolved:
    """Fetch and prove the data before any launch, so that no launch downloads or finds a file broken.

    Raises:
        DataError: a file that is there is wrong; or, where "mnist" was asked for by name, it cannot be had.
    """
    resolved = _resolve(choice, SPLITS)
    if resolved.name == "mnist":
        for split in SPLITS:
            mnist.read_split(split)
    return resolved


def load(choice: DataChoice, *, splits: Collection[Split] = SPLITS) -> Dataset:
    """Load `splits`, and read nothing else.

    "auto" is MNIST where it is or can be downloaded, else synthetic with a note why. A file that is there and wrong
    is an error under "auto" too: broken data is never traded for synthetic data in silence.

    Raises:
        DataError: as `ensure`.
    """
    resolved = _resolve(choice, splits)
    read = mnist.read_split if resolved.name == "mnist" else synthetic_split
    train_images, train_labels = read("train") if "train" in splits else (None, None)
    test_images, test_labels = read("test") if "test" in splits else (None, None)
    return Dataset(resolved.name, resolved.note, train_images, train_labels, test_images, test_labels)


def _resolve(choice: DataChoice, splits: Collection[Split]) -> Resolved:
    if choice == "synthetic":
        return Resolved("synthetic", None)
    try:
        mnist.fetch_missing(splits)
    except DataUnavailableError as error:
        if choice == "mnist":
            raise
        return Resolved("synthetic", f"synthetic in place of MNIST: {error.why}")
    return Resolved("mnist", None)
