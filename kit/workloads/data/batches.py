"""Batches: what a step takes, cut from a data set before any clock runs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kit.workloads.data.errors import DataError
from kit.workloads.workload import Workload

# Distinct batches that the steps of a launch cycle through. Enough that no cache keeps the inputs from one round to
# the next (26 MB at batch 128 on MNIST), few enough to be resident on any device.
POOL_BATCHES = 64

# Frameworks take a NumPy array on the CPU without a copy only where it begins on such a boundary (Eigen's and XLA's
# largest alignment). Where malloc puts an array varies from launch to launch; a step's time must not.
_ALIGNMENT_B = 64

_BRIGHTEST = 255

_Element = TypeVar("_Element", bound=np.generic)


class HostBatch(NamedTuple):
    """One batch in host memory, C-contiguous, each array beginning on a 64-byte boundary."""

    inputs: NDArray[np.float32]  # (batch, *workload.input_shape), in 0..1
    targets: NDArray[np.int32]  # (batch,), class indices


def batch_pool(  # noqa: PLR0917 - a pool has many coordinates
    workload: Workload,
    images: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    batch: int,
    pool_batches: int,
    seed: int,
) -> list[HostBatch]:
    """Cut up to `pool_batches` whole batches from one seeded permutation: no sample is in the pool twice.

    Raises:
        DataError: where the split has fewer than `batch` samples.
    """
    _check_batch(batch, len(images))
    count = max(1, min(pool_batches, len(images) // batch))
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(images))[: count * batch]
    return [_host_batch(workload, images[chosen], labels[chosen]) for chosen in order.reshape(count, batch)]


def evaluation_batches(
    workload: Workload, images: NDArray[np.uint8], labels: NDArray[np.uint8], batch: int
) -> list[HostBatch]:
    """Cut the split, in its own order, into whole batches; the remainder is left out (see `samples_in`).

    Raises:
        DataError: where the split has fewer than `batch` samples.
    """
    _check_batch(batch, len(images))
    starts = range(0, len(images) - batch + 1, batch)
    return [_host_batch(workload, images[at : at + batch], labels[at : at + batch]) for at in starts]


def samples_in(batches: Iterable[HostBatch]) -> int:
    """How many samples `batches` hold: what an accuracy was scored on."""
    return sum(len(batch.targets) for batch in batches)


def pool_sha256(pool: Iterable[HostBatch]) -> str:
    """Over shapes and little-endian bytes of inputs and targets, in order."""
    digest = hashlib.sha256()
    for batch in pool:
        for array, kind in ((batch.inputs, "<f4"), (batch.targets, "<i4")):
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array, dtype=kind).data)
    return digest.hexdigest()


def _check_batch(batch: int, samples: int) -> None:
    if not 1 <= batch <= samples:
        raise DataError(
            f"batch {batch}: expected 1 to {samples}, the number of samples there are; choose another batch"
        )


def _host_batch(workload: Workload, images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> HostBatch:
    inputs = _aligned((len(images), *workload.input_shape), np.float32)
    np.divide(images.reshape(inputs.shape), np.float32(_BRIGHTEST), out=inputs)
    targets = _aligned((len(labels),), np.int32)
    targets[:] = labels
    return HostBatch(inputs, targets)


def _aligned(shape: tuple[int, ...], dtype: type[_Element]) -> NDArray[_Element]:
    """An uninitialized array that begins on a 64-byte boundary."""
    size_b = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.empty(size_b + _ALIGNMENT_B, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT_B
    return room[start : start + size_b].view(dtype).reshape(shape)
