"""Flax NNX modules that begin with weights given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from numpy.typing import NDArray

from kit.workloads.weights import Weights

Dtype: TypeAlias = Any  # what layers compute in; their weights are float32


def given(values: NDArray[np.float32]) -> Callable[..., jax.Array]:
    """Return an initializer that gives `values`, so that no random kernel is drawn first and thrown away."""
    return lambda *_: jnp.array(values)


def dense(weights: Weights, rngs: nnx.Rngs, dtype: Dtype, part: str = "") -> nnx.Linear:
    """Return the Dense layer of these weights, whose names begin with `part`."""
    kernel, bias = weights[f"{part}kernel"], weights[f"{part}bias"]
    return nnx.Linear(*kernel.shape, dtype=dtype, kernel_init=given(kernel), bias_init=given(bias), rngs=rngs)


def norm(weights: Weights, epsilon: float, rngs: nnx.Rngs, dtype: Dtype, part: str = "") -> nnx.LayerNorm:
    """Return the LayerNorm of these weights; its variance is not the difference of two large numbers."""
    scale, offset = weights[f"{part}scale"], weights[f"{part}offset"]
    return nnx.LayerNorm(
        *scale.shape,
        epsilon=epsilon,
        dtype=dtype,
        use_fast_variance=False,
        scale_init=given(scale),
        bias_init=given(offset),
        rngs=rngs,
    )
