"""Data that is made from a seed: learnable, the same on every machine, and good for timing only.

Synthetic data has the shapes of a data set that is not there. Each class has a prototype of blocks; a sample is its
class's prototype plus noise on every element:

    element = 64 * (block is lit) + uniform in 0..127        bytes; of a data set of floats (element - 96) / 64

Images and tokens are made in any case, as no data of this kind may be passed on freely. Small numbers are the more
frequent tokens: each is the product of two uniform numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kit.profile.schema import SYNTHETIC
from kit.workloads.datasets import SPLITS, Dataset, Samples, Split

if TYPE_CHECKING:  # a suite asks for names and sizes only, which is to be quick
    import numpy as np
    from numpy.typing import NDArray

_SEED = 20_240_229  # part of what the data is: another seed is another data set
_BLOCK_SIDE = 4  # elements, so that a 3 x 3 convolution sees shapes and not only noise
_LIT = 64  # under the noise's range of 128, so that no single element gives its class away
_MEAN = 96  # of noise and lit blocks together


def synthetic(stands_for: Dataset) -> Dataset:
    """Return a data set of the same shapes, dtype, classes and published sizes that needs no files."""
    return replace(
        stands_for,
        name=SYNTHETIC,
        files={"train": (), "test": ()},
        read=stands_for.read if stands_for in MADE_DATA_SETS else lambda split, _: _blocks(stands_for, split),
        count=None,
        parse_once=False,
    )


def _blocks(like: Dataset, split: Split) -> Samples:
    """Return one split.

    Only the bit generator's raw output is used: NumPy keeps that stream fixed (NEP 19), and not those of its
    distributions.
    """
    import numpy as np

    raw = np.random.PCG64([_SEED, 1 + SPLITS.index(split)])
    samples = like.sizes[split]
    targets = (raw.random_raw(samples) % like.classes).astype(np.uint8 if like.classes <= 1 << 8 else np.uint16)
    elements = samples * math.prod(like.sample_shape)
    inputs = raw.random_raw(-(-elements // 8)).astype("<u8", copy=False).view(np.uint8)[:elements]
    inputs = inputs.reshape(samples, *like.sample_shape)
    inputs >>= 1
    inputs += _prototypes(like)[targets]
    centred = (inputs.astype(np.float32) - _MEAN) / _LIT if np.dtype(like.dtype).kind == "f" else inputs
    return Samples(centred.astype(like.dtype, copy=False), targets)


def _prototypes(like: Dataset) -> NDArray[np.uint8]:
    """Return (classes, *sample_shape): 0 or 64, about half lit, in blocks of 4 along each axis that 4 divides."""
    import numpy as np

    sides = [_BLOCK_SIDE if length % _BLOCK_SIDE == 0 else 1 for length in like.sample_shape]
    blocks = [length // side for length, side in zip(like.sample_shape, sides, strict=True)]
    raw = np.random.PCG64([_SEED, 0]).random_raw(like.classes * math.prod(blocks))
    lit = (raw >> np.uint64(63)).astype(np.uint8).reshape(like.classes, *blocks) * np.uint8(_LIT)
    for axis, side in enumerate(sides, start=1):
        lit = lit.repeat(side, axis=axis)
    return lit


def _tokens(split: Split, _contents: Sequence[bytes]) -> Samples:
    """Return tokens (samples, tokens); the targets, which are classes of other data, are zeros."""
    import numpy as np

    raw = np.random.PCG64([_SEED, 1 + SPLITS.index(split)])
    shape = (TOKENS.sizes[split], *TOKENS.sample_shape)
    drawn = raw.random_raw(math.prod(shape))
    products = (drawn & np.uint64(0xFFFF)) * ((drawn >> np.uint64(16)) & np.uint64(0xFFFF))
    tokens = (products >> np.uint64(16)) * np.uint64(TOKENS.classes) >> np.uint64(16)
    return Samples(tokens.astype(np.int32).reshape(shape), np.zeros(shape[0], np.uint8))


IMAGES: Dataset = Dataset(
    name="images",
    sample_shape=(224, 224, 3),
    dtype="uint8",
    classes=1000,
    sizes={"train": 1024, "test": 1024},
    files={"train": (), "test": ()},
    read=lambda split, _: _blocks(IMAGES, split),
    divisor=255.0,
)
TOKENS = Dataset(
    name="tokens",
    sample_shape=(1024,),
    dtype="int32",
    classes=50_257,
    sizes={"train": 1024, "test": 1024},
    files={"train": (), "test": ()},
    read=_tokens,
)
MADE_DATA_SETS: list[Dataset] = [IMAGES, TOKENS]
