"""The layer vocabulary: what a network may be made of, as data. Backends translate; they add nothing.

A layer says its weights and what it makes of a shape. Shapes are of one sample, channels last; kernels are (in, out),
those of a convolution (height, width, in, out).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import msgspec

Activation = Literal["linear", "relu", "tanh", "sigmoid"]
# `kit.workloads.weights` has the formulas.
Initializer = Literal["glorot_uniform", "orthogonal", "zeros", "ones", "unit_forget", "small_uniform"]
Shape = tuple[int, ...]


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
        """Count one for each entry of the kernel, at each place."""
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
        """Count one for each entry of the kernel, at each place of the output, padding included."""
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
