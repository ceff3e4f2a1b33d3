"""A workload as Flax NNX modules, channels last like the workload, and its optimizer in optax."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from kit.backends.jax.about import ENTRY
from kit.workloads import workload as kinds
from kit.workloads.seeded_arrays import Weights
from kit.workloads.workload import PlacedLayer, Workload

Step: TypeAlias = nnx.Module | Callable[[jax.Array], jax.Array]
# The workload's name of a weight -> the parameter, or several parameters that divide its last axis.
FlaxParameters: TypeAlias = dict[str, list[nnx.Param]]
KeysAndValues: TypeAlias = tuple[jax.Array, jax.Array]

ACTIVATIONS: dict[str, list[Step]] = {"linear": [], "relu": [nnx.relu], "tanh": [nnx.tanh], "sigmoid": [nnx.sigmoid]}
WEIGHT_NAMES = ("kernel", "bias")  # nnx.Linear and nnx.Conv use the workload's names


def _unset(_key: jax.Array, shape: kinds.Shape, dtype: Any) -> jax.Array:  # noqa: ANN401 - a type of NumPy's
    """Stand in for an initializer. The workload's weights follow, and JAX compiles a random draw for each shape."""
    return jax.device_put(np.zeros(shape, dtype))


KERNEL: dict[str, Any] = {"kernel_init": _unset}
KERNELS: dict[str, Any] = {**KERNEL, "recurrent_kernel_init": _unset}


class FlaxRecurrent(nnx.Module):  # type: ignore[misc]
    """One nnx.RNN or two that return the states of all steps, or the last state of each direction."""

    def __init__(self, cells: list[nnx.RNNCellBase], rngs: nnx.Rngs, *, sequences: bool = False) -> None:
        layers = [nnx.RNN(cell, rngs=rngs) for cell in cells]
        self.layer = nnx.Bidirectional(*layers, rngs=rngs) if len(layers) > 1 else layers[0]
        self._sequences = sequences

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return (batch, steps, units) or (batch, units) for (batch, steps, features); both directions side by side."""
        carry = None
        if isinstance(self.layer, nnx.RNN) and isinstance(cell := self.layer.cell, nnx.SimpleCell):
            # Flax begins in float32, but its scan must return the type that it began with.
            carry = jnp.zeros((len(x), cell.hidden_features), cell.dtype)
        carries, states = self.layer(x, initial_carry=carry, return_carry=True)
        if self._sequences:
            return states
        if carry is not None:
            return carries
        memories_and_states = carries if isinstance(self.layer, nnx.Bidirectional) else [carries]
        return jnp.concatenate([state for _, state in memories_and_states], axis=-1)


class FlaxPositions(nnx.Module):  # type: ignore[misc]
    """Adds a table of (tokens, width)."""

    def __init__(self, shape: kinds.Shape, dtype: Any) -> None:  # noqa: ANN401 - what layers compute in
        self.table = nnx.Param(jnp.zeros(shape))
        self._dtype = dtype

    def __call__(self, x: jax.Array, at: jax.Array | None = None) -> jax.Array:
        """Return (batch, tokens, width); with `at` (), of the one token there."""
        rows = self.table[: x.shape[1]] if at is None else jax.lax.dynamic_slice_in_dim(self.table[...], at, 1)
        return x + rows.astype(self._dtype)


class FlaxDecoderBlock(nnx.Module):  # type: ignore[misc]
    """See `kit.workloads.workload.DecoderBlock`; made as the block of JAX' tutorial "Train a miniGPT language model".

    https://docs.jaxstack.ai/en/latest/JAX_for_LLM_pretraining.html
    """

    def __init__(self, layer: kinds.DecoderBlock, width: int, **options: Any) -> None:  # noqa: ANN401 - dtype and rngs
        wide = kinds.MLP_FACTOR * width
        self.norm_1 = nnx.LayerNorm(width, epsilon=layer.epsilon, **options)
        self.attention = nnx.MultiHeadAttention(layer.heads, width, decode=False, **KERNEL, **options)
        self.norm_2 = nnx.LayerNorm(width, epsilon=layer.epsilon, **options)
        self.up = nnx.Linear(width, wide, **KERNEL, **options)
        self.down = nnx.Linear(wide, width, **KERNEL, **options)
        self._is_approximate = layer.gelu == "tanh"

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return (batch, tokens, width)."""
        return self._after(x, self.attention(self.norm_1(x), mask=nnx.make_causal_mask(x[..., 0])))

    def with_cache(
        self, x: jax.Array, cache: KeysAndValues | None = None, at: jax.Array | None = None
    ) -> tuple[jax.Array, KeysAndValues]:
        """Return (batch, tokens, width), and the keys and values, each (batch, tokens, heads, width of a head).

        Args:
            x: (batch, tokens, width).
            cache: those of all places, which get those of the one token of `x`; None: `x` is all there is.
            at: (), the place of that token.
        """
        normed, attention = self.norm_1(x), self.attention
        query, key, value = attention.query(normed), attention.key(normed), attention.value(normed)
        mask = None
        if cache is not None:
            key, value = map(partial(jax.lax.dynamic_update_slice_in_dim, start_index=at, axis=1), cache, (key, value))
            mask = (jnp.arange(key.shape[1]) <= at)[None, None, None]
        seen = nnx.dot_product_attention(query, key, value, mask=mask, is_causal=mask is None)
        return self._after(x, attention.out(seen)), (key, value)

    def _after(self, x: jax.Array, attended: jax.Array) -> jax.Array:
        x = x + attended
        return x + self.down(nnx.gelu(self.up(self.norm_2(x)), approximate=self._is_approximate))


class FlaxTiedLogits(nnx.Module):  # type: ignore[misc]
    """Multiplies with the table of an embedding."""

    def __init__(self, embedding: nnx.Embed) -> None:
        self.embedding = embedding

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return (batch, tokens, vocabulary) for (batch, tokens, width)."""
        return self.embedding.attend(x)


class FlaxNormed(nnx.Module):  # type: ignore[misc]
    """A convolution without a bias, and batch norm."""

    def __init__(
        self,
        inputs: int,
        filters: int,
        side: int,
        stride: int,
        layer: kinds.ConvolutionStem | kinds.Bottleneck,
        **options: Any,  # noqa: ANN401 - dtype and rngs
    ) -> None:
        around = ((side // 2, side // 2),) * 2
        self.conv = nnx.Conv(
            inputs, filters, (side, side), strides=stride, padding=around, use_bias=False, **KERNEL, **options
        )
        self.norm = nnx.BatchNorm(filters, momentum=layer.momentum, epsilon=layer.epsilon, **options)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return (batch, height, width, filters)."""
        return self.norm(self.conv(x))


class FlaxBottleneck(nnx.Module):  # type: ignore[misc]
    """See `kit.workloads.workload.Bottleneck`; its parts have the names that their weights begin with."""

    def __init__(self, shape: kinds.Shape, layer: kinds.Bottleneck, **options: Any) -> None:  # noqa: ANN401
        inputs, wide = shape[-1], layer.output_shape(shape)[-1]
        self.narrow = FlaxNormed(inputs, layer.filters, 1, 1, layer, **options)
        self.middle = FlaxNormed(layer.filters, layer.filters, 3, layer.stride, layer, **options)
        self.wide = FlaxNormed(layer.filters, wide, 1, 1, layer, **options)
        self.shortcut = FlaxNormed(inputs, wide, 1, layer.stride, layer, **options) if layer.widens(shape) else None

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return (batch, height, width, 4 filters)."""
        wide = self.wide(nnx.relu(self.middle(nnx.relu(self.narrow(x)))))
        return nnx.relu(wide + (x if self.shortcut is None else self.shortcut(x)))


def build_modules(workload: Workload, weights: Weights, seed: int, dtype: Any) -> nnx.Sequential:  # noqa: ANN401
    """Return the network with `weights` in it, computing in `dtype`; `seed` is for dropout."""
    rngs = nnx.Rngs(seed)
    steps: list[Step] = []
    for placed in workload.placed_layers():
        if isinstance(placed.layer, kinds.TiedLogits):
            steps.append(FlaxTiedLogits(steps[0]))
            continue
        layer, parameters = _translate(placed, rngs=rngs, dtype=dtype)
        steps += layer
        for name, parts in parameters.items():
            for parameter, array in zip(parts, np.split(weights[f"{placed.name}.{name}"], len(parts), -1), strict=True):
                parameter.set_value(jnp.array(array.reshape(parameter.shape)))
    return nnx.Sequential(*steps)


def _translate(  # noqa: PLR0911, PLR0912 - one a kind of layer
    placed: PlacedLayer,
    **options: Any,  # noqa: ANN401 - dtype and rngs
) -> tuple[list[Step], FlaxParameters]:
    inputs = placed.input_shape[-1]
    match layer := placed.layer:
        case kinds.Dense():
            linear = nnx.Linear(inputs, layer.units, **KERNEL, **options)
            return [linear, *ACTIVATIONS[layer.activation]], _parameters(linear)
        case kinds.Conv2D():
            conv = nnx.Conv(inputs, layer.filters, layer.kernel, padding=layer.padding.upper(), **KERNEL, **options)
            return [conv, *ACTIVATIONS[layer.activation]], _parameters(conv)
        case kinds.MaxPool2D(size=size):
            return [lambda x: nnx.max_pool(x, window_shape=(size, size), strides=(size, size))], {}
        case kinds.Dropout():
            return [nnx.Dropout(layer.rate, rngs=options["rngs"])], {}
        case kinds.Flatten():
            return [lambda x: x.reshape(x.shape[0], -1)], {}
        case kinds.SimpleRNN():
            cell = nnx.SimpleCell(inputs, layer.units, **KERNELS, **options)
            parameters = {
                "kernel": [cell.dense_i.kernel],
                "recurrent_kernel": [cell.dense_h.kernel],
                "bias": [cell.dense_i.bias],
            }
            return [FlaxRecurrent([cell], options["rngs"])], parameters
        case kinds.LSTM():
            cells, parameters = [], {}
            for prefix in layer.prefixes:
                cells.append(cell := nnx.OptimizedLSTMCell(inputs, layer.units, **KERNELS, **options))
                parameters[f"{prefix}kernel"] = [cell.dense_i.kernel]
                parameters[f"{prefix}recurrent_kernel"] = [cell.dense_h.kernel]
                parameters[f"{prefix}bias"] = [cell.dense_h.bias]
            return [FlaxRecurrent(cells, options["rngs"], sequences=layer.sequences)], parameters
        case kinds.Positions():
            positions = FlaxPositions(placed.input_shape, options["dtype"])
            return [positions], {"table": [positions.table]}
        case kinds.LayerNorm():
            norm = nnx.LayerNorm(inputs, epsilon=layer.epsilon, **options)
            return [norm], _parameters(norm)
        case kinds.DecoderBlock():
            block = FlaxDecoderBlock(layer, inputs, **options)
            attention = block.attention
            apart = attention.query, attention.key, attention.value
            parameters = {f"qkv_{name}": [getattr(part, name) for part in apart] for name in WEIGHT_NAMES}
            others = {name: getattr(block, name) for name in ("norm_1", "norm_2", "up", "down")}
            return [block], parameters | _of_parts({"projection": attention.out, **others})
        case kinds.LastToken():
            return [lambda x: x[:, -1]], {}
        case kinds.Embedding():
            embedding = nnx.Embed(layer.vocabulary, layer.width, embedding_init=_unset, **options)
            return [embedding], {"table": [embedding.embedding]}
        case kinds.ConvolutionStem():
            stem = FlaxNormed(inputs, layer.filters, 7, 2, layer, **options)
            return [stem, nnx.relu, lambda x: nnx.max_pool(x, (3, 3), (2, 2), ((1, 1), (1, 1)))], _parameters(stem)
        case kinds.Bottleneck():
            bottleneck = FlaxBottleneck(placed.input_shape, layer, **options)
            parts = {name: getattr(bottleneck, name) for name in ("narrow", "middle", "wide", "shortcut")}
            return [bottleneck], _of_parts({name: part for name, part in parts.items() if part is not None})
        case kinds.AveragePool():
            return [lambda x: x.mean((1, 2))], {}
        case _:
            raise ENTRY.untranslated(layer)


def _of_parts(parts: dict[str, nnx.Module]) -> FlaxParameters:
    return {f"{part}_{name}": parameter for part in parts for name, parameter in _parameters(parts[part]).items()}


def _parameters(module: nnx.Module) -> FlaxParameters:
    if isinstance(module, FlaxNormed):
        return {"kernel": [module.conv.kernel], **_parameters(module.norm)}
    if isinstance(module, nnx.LayerNorm | nnx.BatchNorm):
        return {"scale": [module.scale], "offset": [module.bias]}
    return {name: [getattr(module, name)] for name in WEIGHT_NAMES}


def build_optimizer(rule: kinds.Optimizer) -> optax.GradientTransformation:
    """Return the optax optimizer of that name, every hyperparameter given."""
    match rule:
        case kinds.SGD(rate):
            return optax.sgd(rate)
        case kinds.RMSprop(rate, rho, epsilon):
            return optax.rmsprop(rate, decay=rho, eps=epsilon)
        case kinds.Adadelta(rate, rho, epsilon):
            return optax.adadelta(rate, rho=rho, eps=epsilon)
        case kinds.Adam(rate, beta_1, beta_2, epsilon):
            return optax.adam(rate, b1=beta_1, b2=beta_2, eps=epsilon)
