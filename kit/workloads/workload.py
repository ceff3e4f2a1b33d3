"""A network, its data, its loss and its optimizer as framework-neutral data, and what a step of it costs.

Backends translate layers and optimizers; they add nothing. A layer says its weights and what it makes of a shape.
Shapes are of one sample, channels last; kernels are (in, out), those of a convolution (height, width, in, out).
Recurrent layers take samples of (steps, features) from a state of zeros, those of a transformer samples of
(tokens, width).

An optimizer has every hyperparameter named, so that no framework's default can slip in. The formulas are Keras'
(https://keras.io/api/optimizers/); g is the gradient, w the weight. Each backend runs its framework's own optimizer:
PyTorch adds the epsilon of RMSprop to the root, PyTorch and optax add that of Adam after the bias correction.

What a step computes and moves at least follows from the layers, the same for every framework:

FLOPs   2 a multiply-add of matrix products, convolutions and attention; elementwise work is not counted.
        train: forward, and twice that backward, less what the first layer's input gradient would take: nobody wants it.
bytes   every array once for each time that it must be read or written:
        infer  weights and input read, each layer's output written and read
        train  weights, gradients and optimizer state read and written; outputs and their gradients, too; input read
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from kit.profile.cell import TASKS, Task

Activation = Literal["linear", "relu", "tanh", "sigmoid"]
# `kit.workloads.seeded_arrays` has the formulas.
Initializer = Literal["glorot_uniform", "orthogonal", "zeros", "ones", "unit_forget", "small_uniform"]
Shape = tuple[int, ...]

GATES = 4  # of an LSTM
# An MLP is four times as wide as its block (Vaswani et al. 2017, "Attention is all you need", section 3.3).
MLP_FACTOR = 4
# "cross_entropy": mean over the batch of softmax cross-entropy with integer targets; the last layer gives logits.
# "reconstruction": mean over batch and elements of the squared difference between the output and the input.
Loss = Literal["cross_entropy", "reconstruction"]

FLOAT32_B, BFLOAT16_B = 4, 2
# Winograd's F(4x4, 3x3) takes a quarter of a convolution's multiply-adds (Lavin and Gray 2016, "Fast algorithms for
# convolutional neural networks"): cuDNN and oneDNN have it.
WINOGRAD = 4


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


class SGD(msgspec.Struct, frozen=True):
    """w -= learning_rate * g."""

    learning_rate: float


class RMSprop(msgspec.Struct, frozen=True):
    """v = rho * v + (1 - rho) * g^2;  w -= learning_rate * g / sqrt(v + epsilon). Epsilon is inside the root."""

    learning_rate: float
    rho: float
    epsilon: float


class Adadelta(msgspec.Struct, frozen=True):
    """a = rho a + (1 - rho) g^2; d = g sqrt(u + epsilon) / sqrt(a + epsilon); u = rho u + (1 - rho) d^2; w -= lr d."""

    learning_rate: float
    rho: float
    epsilon: float


class Adam(msgspec.Struct, frozen=True):
    """m, v moments; w -= lr * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon)."""

    learning_rate: float
    beta_1: float
    beta_2: float
    epsilon: float


Optimizer = SGD | RMSprop | Adadelta | Adam
# Arrays of a parameter's size that an optimizer keeps.
STATES = {SGD: 0, RMSprop: 1, Adadelta: 2, Adam: 2}


class PlacedLayer(NamedTuple):
    """A layer of a network, with its name and input."""

    name: str  # "dense_0", "conv2d_1", …: kind, and index among the layers with weights; empty without weights
    layer: Layer
    input_shape: Shape
    weights: dict[str, Weight]  # own names; in weight files each follows the layer's: "dense_0.kernel"


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a backend needs to know of a network."""

    name: str  # as in cells
    data: str  # the name of the data set it is defined on
    input_shape: Shape  # of one sample, channels last
    classes: int  # of the targets; under cross-entropy the last layer gives that many logits
    layers: tuple[Layer, ...]
    optimizer: Optimizer
    loss: Loss = "cross_entropy"

    def placed_layers(self) -> Iterator[PlacedLayer]:
        """Yield each layer with its name, input shape and weights."""
        shape, named = self.input_shape, 0
        for layer in self.layers:
            weights = layer.weights(shape)
            yield PlacedLayer(f"{type(layer).__name__.lower()}_{named}" if weights else "", layer, shape, weights)
            named += bool(weights)
            shape = layer.output_shape(shape)

    def without_dropout(self) -> Workload:
        """Return the same network with its dropout layers left out: deterministic, for the parity proof."""
        kept = tuple(layer for layer in self.layers if not isinstance(layer, Dropout))
        return msgspec.structs.replace(self, layers=kept)


@dataclass(frozen=True, kw_only=True)
class NetworkFamily:
    """Networks that differ in whole numbers only, such as their layers and units."""

    name: str  # as in cells
    data: str  # the name of the data set they are defined on
    defaults: Mapping[str, int]  # parameter -> value where a suite gives none; each is 1 or more
    build: Callable[..., Workload]  # takes every parameter by name; ValueError for a combination that is no network


class Cost(NamedTuple):
    """Of one step."""

    flops: float
    least_flops: float  # with the fewest multiply-adds by which libraries are known to do it
    bytes: float


def cost_of(workload: Workload, task: Task, batch: int, precision: str) -> Cost | None:
    """Return what a step costs; None: a layer of the network does not say."""
    trains = TASKS[task].trains
    flops = least = 0.0
    weights = outputs = 0
    is_first = True
    for placed in workload.placed_layers():
        products = placed.layer.products(placed.input_shape)
        if products is None:
            return None
        # Forward; backward the gradient of the one factor, and of the other.
        times = 1 if not trains else 2 if is_first else 3
        of_layer = 2.0 * batch * (times * products.with_input + (3 if trains else 1) * products.others)
        flops += of_layer
        least += of_layer / (WINOGRAD if isinstance(placed.layer, Conv2D) else 1)
        is_first = is_first and not sum(products)
        weights += sum(math.prod(weight.shape) for weight in placed.weights.values())
        if placed.weights:
            outputs += math.prod(placed.layer.output_shape(placed.input_shape))
    activation_b = BFLOAT16_B if precision == "bfloat16" else FLOAT32_B
    moved_b = batch * (math.prod(workload.input_shape) * FLOAT32_B + (4 if trains else 2) * outputs * activation_b)
    states = 2 * (2 + STATES[type(workload.optimizer)]) if trains else 1
    return Cost(flops, least, float(moved_b + states * weights * FLOAT32_B))
