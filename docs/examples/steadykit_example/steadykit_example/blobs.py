"""A data set of three clouds of points. It is drawn, not downloaded."""

import numpy as np

from kit.workloads.datasets import Dataset, Samples

SIZES = {"train": 3000, "test": 600}


def read(split, contents):
    """Return inputs (samples, 16) and targets (samples,). There are no files, so `contents` is empty."""
    draw = np.random.default_rng(len(split))
    targets = draw.integers(3, size=SIZES[split]).astype(np.uint8)
    inputs = draw.normal(loc=targets[:, None], scale=0.5, size=(SIZES[split], 16))
    return Samples(inputs.astype(np.float32), targets)


BLOBS = Dataset(
    name="blobs",
    sample_shape=(16,),
    dtype="float32",
    classes=3,
    sizes=SIZES,
    files={"train": (), "test": ()},
    read=read,
)
