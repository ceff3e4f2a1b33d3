"""A workload as Flax NNX modules, channels last like the workload, and its optimizer in optax.

optax.sgd, optax.rmsprop (with eps_in_sqrt) and optax.adadelta are Keras' rules. optax.adam adds epsilon after the bias
correction, Keras before it, so Adam is written here as one optax transformation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from kit.backends.jax import attention, recurrent
from kit.backends.jax.about import ENTRY
from kit.backends.jax.weighted import Dtype, dense, given, norm
from kit.workloads import optimizers as rules
from kit.workloads.attention import DecoderBlock, LastToken, LayerNorm, Positions
from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, MaxPool2D
from kit.workloads.recurrent import LSTM, SimpleRNN
from kit.workloads.weights import Weights
from kit.workloads.workload import PlacedLayer, Workload

Step: TypeAlias = nnx.Module | Callable[[jax.Array], jax.Array]
Tree: TypeAlias = Any  # parameters, or anything of their structure

ACTIVATIONS: dict[str, list[Step]] = {"linear": [], "relu": [nnx.relu], "tanh": [nnx.tanh], "sigmoid": [nnx.sigmoid]}


def build_modules(workload: Workload, weights: Weights, seed: int, dtype: Dtype) -> nnx.Sequential:
    """Return the network with `weights` in it, computing in `dtype`; `seed` is for dropout."""
    rngs = nnx.Rngs(seed)
    steps: list[Step] = []
    for placed in workload.placed_layers():
        arrays = {name: weights[f"{placed.name}.{name}"] for name in placed.weights}
        steps += _translate(placed, rngs, arrays, dtype)
    return nnx.Sequential(*steps)


def _translate(  # noqa: PLR0911 - one a kind of layer
    placed: PlacedLayer, rngs: nnx.Rngs, arrays: Weights, dtype: Dtype
) -> list[Step]:
    match layer := placed.layer:
        case Dense():
            return [dense(arrays, rngs, dtype), *ACTIVATIONS[layer.activation]]
        case Conv2D():
            begin = {f"{name}_init": given(arrays[name]) for name in arrays}
            shape = placed.input_shape[-1], layer.filters, layer.kernel
            conv = nnx.Conv(*shape, padding=layer.padding.upper(), dtype=dtype, rngs=rngs, **begin)
            return [conv, *ACTIVATIONS[layer.activation]]
        case MaxPool2D(size=size):
            return [lambda x: nnx.max_pool(x, window_shape=(size, size), strides=(size, size))]
        case Dropout():
            return [nnx.Dropout(layer.rate, rngs=rngs)]
        case Flatten():
            return [lambda x: x.reshape(x.shape[0], -1)]
        case SimpleRNN():
            return [recurrent.SimpleRNN(arrays, dtype)]
        case LSTM():
            return [recurrent.LSTM(layer, arrays, dtype)]
        case Positions():
            return [attention.Positions(arrays, dtype)]
        case LayerNorm():
            return [norm(arrays, layer.epsilon, rngs, dtype)]
        case DecoderBlock():
            return [attention.DecoderBlock(layer, arrays, rngs, dtype)]
        case LastToken():
            return [lambda x: x[:, -1]]
        case _:
            raise ENTRY.untranslated(layer)


def build_optimizer(rule: rules.Optimizer) -> optax.GradientTransformation:
    """Return the optax transformation that follows `rule`, every hyperparameter given."""
    match rule:
        case rules.SGD(rate):
            return optax.sgd(rate, momentum=None)
        case rules.RMSprop(rate, rho, epsilon):
            return optax.rmsprop(rate, decay=rho, eps=epsilon, initial_scale=0.0, eps_in_sqrt=True)
        case rules.Adadelta(rate, rho, epsilon):
            return optax.adadelta(rate, rho=rho, eps=epsilon, weight_decay=0.0)
        case rules.Adam():
            return _keras_adam(rule)


def _keras_adam(rule: rules.Adam) -> optax.GradientTransformation:
    """Return Adam in its epsilon-hat form."""

    def update(grads: Tree, state: optax.ScaleByAdamState, _params: Tree) -> tuple[Tree, optax.ScaleByAdamState]:
        count = state.count + 1
        momentum = optax.tree.update_moment(grads, state.mu, rule.beta_1, 1)
        velocity = optax.tree.update_moment(grads, state.nu, rule.beta_2, 2)
        rate = rule.learning_rate * jnp.sqrt(1 - rule.beta_2**count) / (1 - rule.beta_1**count)
        updates = jax.tree.map(lambda m, v: -rate * m / (jnp.sqrt(v) + rule.epsilon), momentum, velocity)
        return updates, optax.ScaleByAdamState(count, momentum, velocity)

    return optax.GradientTransformation(optax.scale_by_adam().init, update)
