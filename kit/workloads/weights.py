"""Initial weights from a seed, in NumPy, so that every backend starts from the same numbers."""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from kit.workloads.layers import Weight
from kit.workloads.workload import Workload

Weights = dict[str, NDArray[np.float32]]

# Vectors stay orthonormal to 1e-5, and the same seed gives the same numbers on another processor's LAPACK.
ORTHOGONAL_DECIMALS = 6


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
