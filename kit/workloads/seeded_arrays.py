"""What a step begins with and takes, drawn from the seed in NumPy so that every backend has the same numbers.

initial_weights     of a network, by name
batch_pool          batches that steps cycle through, cut from a data set before any clock runs
Epochs              the training split in whole batches, in another order in each epoch
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.profile.cell import Cell
from kit.workloads.datasets import Dataset, Samples
from kit.workloads.device_operations import length
from kit.workloads.workload import Weight, Workload

Weights = dict[str, NDArray[np.float32]]

# Vectors stay orthonormal to 1e-5, and the same seed gives the same numbers on another processor's LAPACK.
ORTHOGONAL_DECIMALS = 6
# Distinct batches that the steps of a launch cycle through: 26 MB at batch 128 on MNIST. The caches of most CPUs hold
# less; an H100 has 50 MB of L2, which keeps them until the weights and outputs of the steps between push them out.
POOL_BATCHES = 64
# Fewer large batches are distinct, so that a sweep's points fit beside each other.
POOL_B = 64 << 20
POOL_BATCHES_MIN = 2

# Frameworks take a NumPy array on the CPU without a copy only where it begins on such a boundary (Eigen's and XLA's
# largest alignment). Where malloc puts an array varies from launch to launch; a step's time must not.
_ALIGNMENT_B = 64


def initial_weights(workload: Workload, seed: int) -> Weights:
    """Return name -> float32 array, such as ``dense_0.kernel``; the same for the same seed on every machine."""
    generator = np.random.Generator(np.random.PCG64(seed))
    return {
        f"{placed.name}.{name}": _initial(weight, generator)
        for placed in workload.placed_layers()
        for name, weight in placed.weights.items()
    }


def _initial(weight: Weight, generator: np.random.Generator) -> NDArray[np.float32]:
    match weight.initializer:
        case "zeros":
            return np.zeros(weight.shape, np.float32)
        case "ones":
            return np.ones(weight.shape, np.float32)
        case "unit_forget":
            # Jozefowicz et al. 2015, "An empirical exploration of recurrent network architectures", section 3.2.
            return np.repeat(np.array([0, 1, 0, 0], np.float32), weight.shape[0] // 4)
        case "small_uniform":
            return generator.uniform(-0.05, 0.05, weight.shape).astype(np.float32)
        case "orthogonal":
            return _orthogonal(weight.shape, generator)
        case "glorot_uniform":
            # Glorot and Bengio 2010, "Understanding the difficulty of training deep feedforward neural networks",
            # eq. 16, as Keras counts the fans: each includes the receptive field.
            *field, inputs, outputs = weight.shape
            limit = math.sqrt(6.0 / (math.prod(field) * (inputs + outputs)))
            return generator.uniform(-limit, limit, weight.shape).astype(np.float32)


def _orthogonal(shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.float32]:
    """Return (rows, columns) whose shorter side's vectors are orthonormal.

    Saxe et al. 2014, "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks".
    """
    q, r = np.linalg.qr(generator.standard_normal((max(shape), min(shape))))
    q *= np.sign(np.diag(r))  # else the decomposition decides the signs, and they are not uniform
    return np.round(q if shape[0] >= shape[1] else q.T, ORTHOGONAL_DECIMALS).astype(np.float32)


def weights_sha256(weights: Weights) -> str:
    """Return the SHA-256 over names, shapes and little-endian bytes, in name order."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name], dtype="<f4")
        digest.update(f"{name}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


class HostBatch(NamedTuple):
    """One batch in host memory, C-contiguous, each array beginning on a 64-byte boundary."""

    inputs: NDArray[Any]  # (batch, *workload.input_shape), as prepared; or tokens
    targets: NDArray[np.int32]  # (batch,), class indices; of tokens (batch, tokens), the next one of each


def batch_pool(
    workload: Workload, data: Dataset, samples: Samples, batch: int, *, seed: int, most: int = POOL_BATCHES
) -> list[HostBatch]:
    """Cut some whole batches, at `most` so many, from one seeded permutation: no sample is in the pool twice.

    `samples` is a split of `data`, with at least `batch` of them.
    """
    batch_b = 4 * batch * math.prod(workload.input_shape)
    count = min(most, max(POOL_BATCHES_MIN, POOL_B // batch_b), len(samples.targets) // batch)
    order = _permutation(samples, seed)[: count * batch]
    return [_host_batch(workload, data, samples, chosen) for chosen in order.reshape(count, batch)]


class Epochs:
    """The training split in whole batches, cut once from a seeded permutation; each epoch takes them in another order.

    The remainder of the split is left out, so that every step has one shape and every framework as many updates. Of
    several ranks each gathers its own part of a batch alone.
    """

    def __init__(
        self,
        workload: Workload,
        data: Dataset,
        samples: Samples,
        batch: int,
        *,
        seed: int,
        part: int = 0,
        parts: int = 1,
    ) -> None:
        self._make = partial(_host_batch, workload, data, samples)
        self._seed = seed
        self.steps = len(samples.targets) // batch
        whole = _permutation(samples, seed)[: self.steps * batch]
        self._chosen = whole.reshape(self.steps, parts, batch // parts)[:, part]

    def host_batch(self, index: int) -> HostBatch:
        """Return a batch, or this rank's part of it, gathered from the samples and prepared now."""
        return self._make(self._chosen[index])

    def order(self, epoch: int) -> list[int]:
        """Return the indices of the batches in the order of one epoch."""
        shuffled: list[int] = np.random.Generator(np.random.PCG64([self._seed, epoch])).permutation(self.steps).tolist()
        return shuffled


def part_of(batch: HostBatch, number: int, count: int) -> HostBatch:
    """Return part `number` of `count` equal parts of a batch, which divides by it; the batch itself of one."""
    if count == 1:
        return batch
    size = len(batch.targets) // count
    parts = [array[number * size : (number + 1) * size] for array in batch]
    aligned = [_aligned(part.shape, part.dtype.type) for part in parts]
    for room, part in zip(aligned, parts, strict=True):
        room[...] = part
    return HostBatch(*aligned)


def scoring_batches(workload: Workload, data: Dataset, samples: Samples, batch: int) -> list[HostBatch]:
    """Cut the split, in its own order, into batches of one size; the last is filled up with samples of the first."""
    total = len(samples.targets)
    starts = range(0, total, batch)
    return [_host_batch(workload, data, samples, np.arange(at, at + batch) % total) for at in starts]


def pool_sha256(pool: Iterable[HostBatch]) -> str:
    """Return the SHA-256 over shapes and little-endian bytes of inputs and targets, in order."""
    digest = hashlib.sha256()
    for batch in pool:
        for array, kind in ((batch.inputs, "<f4"), (batch.targets, "<i4")):
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array, dtype=kind).data)
    return digest.hexdigest()


def _permutation(samples: Samples, seed: int) -> NDArray[np.int64]:
    return np.random.Generator(np.random.PCG64(seed)).permutation(len(samples.targets))


def _host_batch(workload: Workload, data: Dataset, samples: Samples, chosen: NDArray[np.int64]) -> HostBatch:
    picked = samples.targets[chosen]
    if workload.takes_tokens:
        shape = (len(picked), *workload.input_shape)
        tokens, following = _aligned(shape, np.int32), _aligned(shape, np.int32)
        # A smaller vocabulary keeps the order of how frequent tokens are. A sample's last is followed by its first.
        tokens[...] = samples.inputs[chosen, : shape[1]].astype(np.int64) * workload.classes // data.classes
        following[...] = np.roll(tokens, -1, axis=1)
        return HostBatch(tokens, following)
    inputs = _aligned((len(picked), *workload.input_shape), np.float32)
    data.prepare(samples.inputs[chosen], inputs)
    targets = _aligned(picked.shape, np.int32)
    targets[:] = picked
    return HostBatch(inputs, targets)


def _aligned(shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """Return an uninitialized array that begins on a 64-byte boundary."""
    size_b = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.empty(size_b + _ALIGNMENT_B, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT_B
    return room[start : start + size_b].view(dtype).reshape(shape)


def operation_values(cell: Cell) -> NDArray[np.float32]:
    """Return the array that an operation reads, the same in every framework: random numbers in [0, 1).

    How much power a device draws depends on the bits that change, and ones change few.
    """
    return np.random.default_rng(0).random(length(cell), np.float32)
