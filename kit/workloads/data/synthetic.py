"""Data with MNIST's shapes where MNIST is not: made from a seed, learnable, and good for timing only.

Each class has a prototype of blocks; an image is its class's prototype plus noise on every pixel:

    pixel = 64 * (block is lit) + uniform in 0..127
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kit.workloads.data.split import CLASSES, IMAGE_SHAPE, SAMPLES, Split

# Part of what the data is: another seed is another data set.
_SEED = 20_240_229
_STREAM: dict[Split | None, int] = {None: 0, "train": 1, "test": 2}

_BLOCK = 4  # pixels a side, so that a 3 x 3 convolution sees shapes and not only noise
_LIT = 64  # under the noise's range of 128, so that no single pixel gives its class away


def synthetic_split(split: Split) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """One split: images (samples, 28, 28) and labels (samples,), uint8, the same on every machine.

    Only the bit generator's raw output is used: NumPy keeps that stream fixed (NEP 19), and not those of its
    distributions.
    """
    raw = np.random.PCG64([_SEED, _STREAM[split]])
    samples = SAMPLES[split]
    labels = (raw.random_raw(samples) % CLASSES).astype(np.uint8)
    images = raw.random_raw(samples * math.prod(IMAGE_SHAPE) // 8).astype("<u8", copy=False).view(np.uint8)
    images = images.reshape(samples, *IMAGE_SHAPE)
    images >>= 1
    images += prototypes()[labels]
    return images, labels


def prototypes() -> NDArray[np.uint8]:
    """(classes, 28, 28): 0 or 64, in blocks of 4 x 4, about half of them lit."""
    raw = np.random.PCG64([_SEED, _STREAM[None]])
    rows, columns = (side // _BLOCK for side in IMAGE_SHAPE)
    lit = (raw.random_raw(CLASSES * rows * columns) >> np.uint64(63)).astype(np.uint8).reshape(CLASSES, rows, columns)
    return (lit * np.uint8(_LIT)).repeat(_BLOCK, axis=1).repeat(_BLOCK, axis=2)
