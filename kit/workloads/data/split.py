"""The two splits of a data set, and their sizes in MNIST (synthetic data has the same)."""

from __future__ import annotations

from typing import Literal

Split = Literal["train", "test"]

SPLITS: tuple[Split, ...] = ("train", "test")
SAMPLES: dict[Split, int] = {"train": 60_000, "test": 10_000}
IMAGE_SHAPE = (28, 28)
CLASSES = 10
