"""Data with the shapes of a data set that is not there: made from a seed, learnable, and good for timing only.

Each class has a prototype of blocks; a sample is its class's prototype plus noise on every element:

    element = 64 * (block is lit) + uniform in 0..127        bytes; of a data set of floats (element - 96) / 64
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kit.profile.launch import SYNTHETIC
from kit.workloads.data.dataset import SPLITS, Dataset, Samples, Split

_SEED = 20_240_229  # part of what the data is: another seed is another data set
_BLOCK = 4  # elements a side, so that a 3 x 3 convolution sees shapes and not only noise
_LIT = 64  # under the noise's range of 128, so that no single element gives its class away
_MEAN = 96  # of noise and lit blocks together


def synthetic(stands_for: Dataset) -> Dataset:
    """Return a data set of the same shapes, dtype, classes and published sizes that needs no files."""

    def read(split: Split, _contents: Sequence[bytes]) -> Samples:
        """Make one split, the same on every machine.

        Only the bit generator's raw output is used: NumPy keeps that stream fixed (NEP 19), and not those of its
        distributions.
        """
        raw = np.random.PCG64([_SEED, 1 + SPLITS.index(split)])
        samples = stands_for.sizes[split]
        targets = (raw.random_raw(samples) % stands_for.classes).astype(np.uint8)
        elements = samples * math.prod(stands_for.sample_shape)
        inputs = raw.random_raw(-(-elements // 8)).astype("<u8", copy=False).view(np.uint8)[:elements]
        inputs = inputs.reshape(samples, *stands_for.sample_shape)
        inputs >>= 1
        inputs += _prototypes(stands_for)[targets]
        centred = (inputs.astype(np.float32) - _MEAN) / _LIT if np.dtype(stands_for.dtype).kind == "f" else inputs
        return Samples(centred.astype(stands_for.dtype, copy=False), targets)

    return replace(stands_for, name=SYNTHETIC, files={"train": (), "test": ()}, read=read, count=None, parse_once=False)


def _prototypes(stands_for: Dataset) -> NDArray[np.uint8]:
    """Return (classes, *sample_shape): 0 or 64, about half lit, in blocks of 4 along each axis that 4 divides."""
    sides = [_BLOCK if length % _BLOCK == 0 else 1 for length in stands_for.sample_shape]
    blocks = [length // side for length, side in zip(stands_for.sample_shape, sides, strict=True)]
    raw = np.random.PCG64([_SEED, 0]).random_raw(stands_for.classes * math.prod(blocks))
    lit = (raw >> np.uint64(63)).astype(np.uint8).reshape(stands_for.classes, *blocks) * np.uint8(_LIT)
    for axis, side in enumerate(sides, start=1):
        lit = lit.repeat(side, axis=axis)
    return lit
