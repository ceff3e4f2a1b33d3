"""A workload as Flax NNX modules, and its weights. Both are channels last, so no layout changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from numpy.typing import NDArray

from kit.workloads.layers import Activation, Conv2D, Dense, Dropout, Flatten, MaxPool2D
from kit.workloads.shapes import layer_shapes, weighted_layers
from kit.workloads.weights import Weights
from kit.workloads.workload import Workload

ACTIVATIONS: dict[Activation, Callable[[jax.Array], jax.Array]] = {
    "relu": nnx.relu,
    "tanh": nnx.tanh,
    "sigmoid": nnx.sigmoid,
}


Step: TypeAlias = nnx.Module | Callable[[jax.Array], jax.Array]


def build_modules(workload: Workload, weights: Weights, seed: int) -> nnx.Sequential:
    """The network with `weights` in it; `seed` is for dropout."""
    rngs = nnx.Rngs(seed)
    names = iter(weighted_layers(workload))
    steps: list[Step] = []
    for layer, before, _ in layer_shapes(workload):
        if isinstance(layer, Dense | Conv2D):
            name = next(names).name
            initial = {"kernel_init": _given(weights[f"{name}.kernel"]), "bias_init": _given(weights[f"{name}.bias"])}
            steps.append(_weighted_module(layer, before[-1], rngs, initial))
            if layer.activation != "linear":
                steps.append(ACTIVATIONS[layer.activation])
        else:
            steps.append(_module(layer, rngs))
    return nnx.Sequential(*steps)


def dump_weights(workload: Workload, model: nnx.Sequential) -> Weights:
    """The weights in `model`, copied to the host."""
    modules = [step for step in model.layers if isinstance(step, nnx.Linear | nnx.Conv)]
    dumped: Weights = {}
    for weighted, module in zip(weighted_layers(workload), modules, strict=True):
        dumped[f"{weighted.name}.kernel"] = np.array(module.kernel[...])
        dumped[f"{weighted.name}.bias"] = np.array(module.bias[...])
    return dumped


def _given(values: NDArray[np.float32]) -> Callable[..., jax.Array]:
    """An initializer that gives `values`, so that no random kernel is drawn first and thrown away."""
    return lambda *_: jnp.array(values)


def _weighted_module(layer: Dense | Conv2D, inputs: int, rngs: nnx.Rngs, initial: dict[str, Any]) -> nnx.Module:
    match layer:
        case Dense(units=units):
            return nnx.Linear(inputs, units, rngs=rngs, **initial)
        case Conv2D(filters=filters, kernel=kernel, padding=padding):
            return nnx.Conv(inputs, filters, kernel, padding=padding.upper(), rngs=rngs, **initial)


def _module(layer: MaxPool2D | Dropout | Flatten, rngs: nnx.Rngs) -> Step:
    match layer:
        case MaxPool2D(size=size):
            window = (size, size)
            return lambda x: nnx.max_pool(x, window_shape=window, strides=window)
        case Dropout(rate=rate):
            return nnx.Dropout(rate, rngs=rngs)
        case Flatten():
            return lambda x: x.reshape(x.shape[0], -1)
