"""The layer vocabulary: what a network may be made of, as data. Backends translate; they add nothing.

A layer says its weights and what it makes of a shape. Shapes are of one sample, channels last; kernels are (in, out),
those of a convolution (height, width, in, out). Recurrent layers take samples of (steps, features) from a state of
zeros, those of a transformer samples of (tokens, width).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import msgspec

Activation = Literal["linear", "relu", "tanh", "sigmoid"]
# `kit.workloads.weights` has the formulas.
Initializer = Literal["glorot_uniform", "orthogonal", "zeros", "ones", "unit_forget", "small_uniform"]
Shape = tuple[int, ...]

GATES = 4  # of an LSTM
# An MLP is four times as wide as its block (Vaswani et al. 2017, "Attention is all you need", section 3.3).
MLP_FACTOR = 4


class Weight(NamedTuple):
    """One array of a layer, and how it begins."""

    shape: Shape
    initializer: Initializer


class Products(NamedTuple):
    """Multiply-adds of a layer's forward pass over one sample."""

    with_input: int  # in which its input is a factor: without a gradient of the input, half of their backward pass
    others: int = 0


class Layer(msgspec.Struct, frozen=True):
    """The contract of a layer; this one has no weights and keeps the shape."""

    def weights(self, shape: Shape) -> dict[str, Weight]:  # noqa: ARG002 - most layers with weights need it
        """Return the layer's weights by name for samples of `shape`, in the order in which they are drawn."""
        return {}

    def output_shape(self, shape: Shape) -> Shape:
        """Return what becomes of a sample of `shape`."""
        return shape

    def products(self, shape: Shape) -> Products | None:
        """Return its multiply-adds over a sample of `shape`; None: not known, as of a layer that does not say them."""
        return None if self.weights(shape) else Products(0)


class Dense(Layer, frozen=True):
    """y = activation(x @ kernel + bias)."""

    units: int
    activation: Activation = "linear"

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return kernel (in, units) and bias (units,)."""
        return {"kernel": Weight((shape[-1], self.units), "glorot_uniform"), "bias": Weight((self.units,), "zeros")}

    def output_shape(self, shape: Shape) -> Shape:
        """Return (units,) for (features,)."""
        return (*shape[:-1], self.units)

    def products(self, shape: Shape) -> Products:
        """Count one for each entry of the kernel, for each vector of features."""
        return Products(math.prod(shape) * self.units)


class Conv2D(Layer, frozen=True):
    """Stride-1 cross-correlation with bias, over (height, width)."""

    filters: int
    kernel: tuple[int, int]
    activation: Activation = "linear"
    padding: Literal["valid", "same"] = "valid"

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return kernel (height, width, in, filters) and bias (filters,)."""
        kernel = Weight((*self.kernel, shape[-1], self.filters), "glorot_uniform")
        return {"kernel": kernel, "bias": Weight((self.filters,), "zeros")}

    def output_shape(self, shape: Shape) -> Shape:
        """Return (height, width, filters), smaller by the kernel less one unless padded."""
        cut = (0, 0) if self.padding == "same" else (self.kernel[0] - 1, self.kernel[1] - 1)
        return (shape[0] - cut[0], shape[1] - cut[1], self.filters)

    def products(self, shape: Shape) -> Products:
        """Count one for each entry of the kernel, at each position of the output, padding included."""
        return Products(math.prod(self.output_shape(shape)) * math.prod(self.kernel) * shape[-1])


class MaxPool2D(Layer, frozen=True):
    """Non-overlapping maximum over `size` x `size` windows; a remainder at the edge is dropped."""

    size: int

    def output_shape(self, shape: Shape) -> Shape:
        """Return (height // size, width // size, channels)."""
        return (shape[0] // self.size, shape[1] // self.size, shape[2])


class Dropout(Layer, frozen=True):
    """Zero with probability `rate` and scale the rest by 1 / (1 - rate), in training only."""

    rate: float


class Flatten(Layer, frozen=True):
    """To (batch, features), channels fastest."""

    def output_shape(self, shape: Shape) -> Shape:
        """Return (features,)."""
        return (math.prod(shape),)


class SimpleRNN(Layer, frozen=True):
    """The last state of h = tanh(x @ kernel + h @ recurrent_kernel + bias)."""

    units: int

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return kernel (features, units), recurrent_kernel (units, units) and bias (units,)."""
        return {
            "kernel": Weight((shape[-1], self.units), "glorot_uniform"),
            "recurrent_kernel": Weight((self.units, self.units), "orthogonal"),
            "bias": Weight((self.units,), "zeros"),
        }

    def output_shape(self, shape: Shape) -> Shape:  # noqa: ARG002
        """Return (units,) for (steps, features)."""
        return (self.units,)

    def products(self, shape: Shape) -> Products:
        """Count both kernels in each step."""
        steps, features = shape
        return Products(steps * features * self.units, steps * self.units**2)


class LSTM(Layer, frozen=True):
    """A long short-term memory: its last state, or the states of all steps.

        i, f, g, o = split(x @ kernel + h @ recurrent_kernel + bias)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)

    Bidirectional, it is two: one reads forwards, the other backwards, and what both give is concatenated, each step's
    with the same step's, or the last state that each came to.
    """

    units: int
    sequences: bool = False
    bidirectional: bool = False

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Return what the names of each direction's weights begin with."""
        return ("forward_", "backward_") if self.bidirectional else ("",)

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return of each direction kernel (features, 4 units), recurrent_kernel (units, 4 units), bias (4 units,)."""
        wide = GATES * self.units
        weights = {
            "kernel": Weight((shape[-1], wide), "glorot_uniform"),
            "recurrent_kernel": Weight((self.units, wide), "orthogonal"),
            "bias": Weight((wide,), "unit_forget"),
        }
        return {prefix + name: weight for prefix in self.prefixes for name, weight in weights.items()}

    def output_shape(self, shape: Shape) -> Shape:
        """Return (steps, units) or (units,) for (steps, features); twice the units where bidirectional."""
        wide = self.units * len(self.prefixes)
        return (shape[0], wide) if self.sequences else (wide,)

    def products(self, shape: Shape) -> Products:
        """Count both kernels of each direction in each step."""
        steps, features = shape
        gates = steps * GATES * self.units * len(self.prefixes)
        return Products(gates * features, gates * self.units)


class Positions(Layer, frozen=True):
    """y = x + table: the table is learned, a row for each token."""

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return table (tokens, width)."""
        return {"table": Weight(shape, "small_uniform")}

    def products(self, shape: Shape) -> Products:  # noqa: ARG002
        """None: it adds."""
        return Products(0)


class LayerNorm(Layer, frozen=True):
    """y = (x - mean) / sqrt(variance + epsilon) * scale + offset, over the last axis, with the biased variance."""

    epsilon: float = 1e-5

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return scale (width,) and offset (width,)."""
        return {"scale": Weight(shape[-1:], "ones"), "offset": Weight(shape[-1:], "zeros")}

    def products(self, shape: Shape) -> Products:  # noqa: ARG002
        """None: only products of matrices are counted."""
        return Products(0)


class DecoderBlock(Layer, frozen=True):
    """A pre-norm decoder block with causal self-attention.

        x ─┬─ norm_1 ─ qkv ─ attention ─ projection ─ + ─┬─ norm_2 ─ up ─ GELU ─ down ─ + ─►
           └──────────────────────────────────────────┘   └─────────────────────────────┘

    Attention is softmax(q k^T / sqrt(width / heads)) v, where a token sees itself and those before it. GELU is exact:
    x Φ(x). `qkv` gives q, k and v side by side, each with its heads side by side.
    """

    heads: int
    epsilon: float = 1e-5  # of both norms

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return scale and offset (width,) of both norms, kernel (in, out) and bias (out,) of the four Dense layers."""
        width = shape[-1]
        norm = {"scale": Weight((width,), "ones"), "offset": Weight((width,), "zeros")}

        def dense(inputs: int, outputs: int) -> dict[str, Weight]:
            return {"kernel": Weight((inputs, outputs), "glorot_uniform"), "bias": Weight((outputs,), "zeros")}

        parts = {
            "norm_1": norm,
            "qkv": dense(width, 3 * width),
            "projection": dense(width, width),
            "norm_2": norm,
            "up": dense(width, MLP_FACTOR * width),
            "down": dense(MLP_FACTOR * width, width),
        }
        return {f"{part}_{name}": weight for part, weights in parts.items() for name, weight in weights.items()}

    def products(self, shape: Shape) -> Products:
        """Count the four Dense layers, and of attention q k^T and its product with v, whole: masked entries, too."""
        tokens, width = shape
        dense = (3 + 1 + 2 * MLP_FACTOR) * tokens * width**2
        return Products(dense, 2 * tokens**2 * width)


class LastToken(Layer, frozen=True):
    """The last token alone."""

    def output_shape(self, shape: Shape) -> Shape:
        """Return (width,) for (tokens, width)."""
        return shape[1:]
