"""Initial weights from a seed, in NumPy, so that every backend starts from the same numbers.

Glorot uniform kernels and zero biases (Glorot and Bengio 2010, "Understanding the difficulty of training deep
feedforward neural networks"), as Keras initializes Dense and Conv2D.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from kit.workloads.layers import Conv2D, Dense
from kit.workloads.shapes import WeightedLayer, weighted_layers
from kit.workloads.workload import Workload

Weights = dict[str, NDArray[np.float32]]


def kernel_shape(weighted: WeightedLayer) -> tuple[int, ...]:
    """(in, out) for `Dense`, (height, width, in, out) for `Conv2D`."""
    match weighted.layer:
        case Dense(units=units):
            return (weighted.inputs, units)
        case Conv2D(filters=filters, kernel=kernel):
            return (*kernel, weighted.inputs, filters)


def initial_weights(workload: Workload, seed: int) -> Weights:
    """Name -> float32 array, ``<layer>.kernel`` and ``<layer>.bias``; the same for the same seed on every machine."""
    generator = np.random.Generator(np.random.PCG64(seed))
    weights: Weights = {}
    for weighted in weighted_layers(workload):
        shape = kernel_shape(weighted)
        receptive_field = math.prod(shape[:-2])
        limit = math.sqrt(6.0 / (receptive_field * (shape[-2] + shape[-1])))
        weights[f"{weighted.name}.kernel"] = generator.uniform(-limit, limit, shape).astype(np.float32)
        weights[f"{weighted.name}.bias"] = np.zeros(shape[-1], np.float32)
    return weights


def weights_sha256(weights: Weights) -> str:
    """Over names, shapes and little-endian bytes, in name order."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name], dtype="<f4")
        digest.update(f"{name}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
