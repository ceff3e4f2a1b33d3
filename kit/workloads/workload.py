"""A network, its data, its loss and its optimizer as framework-neutral data.

Backends translate layers and optimizers; they add nothing. A layer says its weights and what it makes of a shape.
Shapes are of one sample, channels last; kernels are (in, out), those of a convolution (height, width, in, out).
Recurrent layers take samples of (steps, features) from a state of zeros, those of a transformer samples of
(tokens, width). Networks that begin with an `Embedding` take samples of (tokens,), each a whole number, and predict the
next token of each:

train   the loss of all tokens
infer   prefill: keys and values of all tokens are kept in a cache, and the last token gives the logits of the first
        token of an answer
decode  one token more of each sample: it is written into the cache, attends to it, and its logits' largest is the next
        step's token. The cache has its full length from the first step on, as compilers want fixed shapes; half of it
        is a prompt that was read before the first step, and when it is full, the step after the prompt follows.

An optimizer has every hyperparameter named, so that no framework's default can slip in. The formulas are Keras'
(https://keras.io/api/optimizers/); g is the gradient, w the weight. Each backend runs its framework's own optimizer:
PyTorch adds the epsilon of RMSprop to the root, PyTorch and optax add that of Adam after the bias correction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

Activation = Literal["linear", "relu", "tanh", "sigmoid"]
# `kit.workloads.seeded_arrays` has the formulas.
Initializer = Literal["glorot_uniform", "orthogonal", "zeros", "ones", "unit_forget", "small_uniform"]
Shape = tuple[int, ...]

GATES = 4  # of an LSTM
# An MLP is four times as wide as its block (Vaswani et al. 2017, "Attention is all you need", section 3.3).
MLP_FACTOR = 4
# So many filters has the last convolution of a bottleneck for each of the others (He et al. 2016).
BOTTLENECK_FACTOR = 4
# "cross_entropy": mean over the batch of softmax cross-entropy with integer targets; the last layer gives logits.
# "reconstruction": mean over batch and elements of the squared difference between the output and the input.
Loss = Literal["cross_entropy", "reconstruction"]


class Weight(NamedTuple):
    """One array of a layer, and how it begins."""

    shape: Shape
    initializer: Initializer


class Products(NamedTuple):
    """Multiply-adds of a layer's forward pass over one sample."""

    with_input: int  # in which its input is a factor: without a gradient of the input, half of their backward pass
    others: int = 0
    winograd: int = 0  # of both, in convolutions that Winograd's algorithm may compute

    @property
    def total(self) -> int:
        """Return all of them."""
        return self.with_input + self.others


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

    def kept(self, shape: Shape) -> int:
        """Return how many numbers its products make of a sample of `shape`, which a backward pass needs again.

        Norms and activations are left out: a compiler makes them again.
        """
        return math.prod(self.output_shape(shape)) if self.weights(shape) else 0


def _convolution(prefix: str, side: int, inputs: int, filters: int) -> dict[str, Weight]:
    """Return the weights of a convolution without a bias and of the batch norm behind it."""
    return {
        f"{prefix}kernel": Weight((side, side, inputs, filters), "glorot_uniform"),
        f"{prefix}scale": Weight((filters,), "ones"),
        f"{prefix}offset": Weight((filters,), "zeros"),
    }


def _halved(side: int) -> int:
    return -(-side // 2)


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
        products = math.prod(self.output_shape(shape)) * math.prod(self.kernel) * shape[-1]
        return Products(products, winograd=products)


class ConvolutionStem(Layer, frozen=True):
    """What a residual network begins with: convolution 7 x 7 of stride 2, batch norm, ReLU, maximum 3 x 3 of stride 2.

    He et al. 2016, "Deep residual learning for image recognition", table 1. Both pad, the one by 3 and the other by 1,
    on all sides. Batch norm is ``(x - mean) / sqrt(variance + epsilon) * scale + offset``: in training with mean and
    variance of the batch, whose running means it keeps by `momentum`, and in inference with those.
    """

    filters: int
    epsilon: float = 1e-5
    momentum: float = 0.9  # running = momentum * running + (1 - momentum) * batch

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return kernel (7, 7, in, filters), and scale and offset (filters,) of the norm."""
        return _convolution("", 7, shape[-1], self.filters)

    def output_shape(self, shape: Shape) -> Shape:
        """Return a quarter of height and width, rounded up twice."""
        return (*(_halved(_halved(side)) for side in shape[:2]), self.filters)

    def products(self, shape: Shape) -> Products:
        """Count the convolution."""
        return Products(math.prod(map(_halved, shape[:2])) * self.filters * 7 * 7 * shape[-1])

    def kept(self, shape: Shape) -> int:
        """Return the numbers of the convolution."""
        return math.prod(map(_halved, shape[:2])) * self.filters


class Bottleneck(Layer, frozen=True):
    """A block of a residual network, with its stride in the 3 x 3 convolution (ResNet v1.5, as MLPerf has it).

        x ─┬─ 1 x 1 ─ norm ─ ReLU ─ 3 x 3 ─ norm ─ ReLU ─ 1 x 1 ─ norm ─ + ─ ReLU ─►
           └───────────────── 1 x 1 ─ norm, if shapes differ ────────────┘

    The last convolution has four times as many filters. No convolution has a bias; 3 x 3 pads by 1 on all sides.
    Norms are those of `ConvolutionStem`.
    """

    filters: int
    stride: int = 1
    epsilon: float = 1e-5
    momentum: float = 0.9

    def widens(self, shape: Shape) -> bool:
        """Return whether the shortcut has a convolution."""
        return self.stride > 1 or shape[-1] != BOTTLENECK_FACTOR * self.filters

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return kernel (height, width, in, out), scale and offset (out,) of each convolution and its norm."""
        wide = BOTTLENECK_FACTOR * self.filters
        weights = _convolution("narrow_", 1, shape[-1], self.filters)
        weights |= _convolution("middle_", 3, self.filters, self.filters)
        weights |= _convolution("wide_", 1, self.filters, wide)
        # Each block begins as its shortcut (Goyal et al. 2017, "Accurate, large minibatch SGD", section 5.1).
        # Frameworks that differ in rounding alone then stay together for some steps.
        weights["wide_scale"] = Weight((wide,), "zeros")
        return weights | (_convolution("shortcut_", 1, shape[-1], wide) if self.widens(shape) else {})

    def output_shape(self, shape: Shape) -> Shape:
        """Return (height, width, 4 filters), height and width by the stride, rounded up."""
        return (*(-(-side // self.stride) for side in shape[:2]), BOTTLENECK_FACTOR * self.filters)

    def products(self, shape: Shape) -> Products:
        """Count its convolutions."""
        before, after = math.prod(shape[:2]), math.prod(self.output_shape(shape)[:2])
        wide = BOTTLENECK_FACTOR * self.filters
        outer = before * shape[-1] * self.filters + after * self.filters * wide
        outer += after * shape[-1] * wide if self.widens(shape) else 0
        middle = after * 9 * self.filters**2
        return Products(outer, middle, winograd=middle if self.stride == 1 else 0)

    def kept(self, shape: Shape) -> int:
        """Return the numbers of each convolution."""
        before, after = math.prod(shape[:2]), math.prod(self.output_shape(shape)[:2])
        wide = BOTTLENECK_FACTOR * self.filters * (2 if self.widens(shape) else 1)
        return before * self.filters + after * self.filters + after * wide


class AveragePool(Layer, frozen=True):
    """The mean over height and width."""

    def output_shape(self, shape: Shape) -> Shape:
        """Return (channels,)."""
        return shape[-1:]


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


class Embedding(Layer, frozen=True):
    """y = table[token], for each token of a sample of (tokens,)."""

    vocabulary: int
    width: int

    def weights(self, shape: Shape) -> dict[str, Weight]:  # noqa: ARG002
        """Return table (vocabulary, width)."""
        return {"table": Weight((self.vocabulary, self.width), "small_uniform")}

    def output_shape(self, shape: Shape) -> Shape:
        """Return (tokens, width)."""
        return (*shape, self.width)

    def products(self, shape: Shape) -> Products:  # noqa: ARG002
        """None: it looks up."""
        return Products(0)


class TiedLogits(Layer, frozen=True):
    """y = x @ table^T, with the table of the embedding (Press and Wolf 2017; GPT-2 does so)."""

    vocabulary: int

    def output_shape(self, shape: Shape) -> Shape:
        """Return (tokens, vocabulary)."""
        return (*shape[:-1], self.vocabulary)

    def products(self, shape: Shape) -> Products:
        """Count one for each entry of the table, for each token."""
        return Products(math.prod(shape) * self.vocabulary)

    def kept(self, shape: Shape) -> int:
        """Return the numbers of the logits."""
        return math.prod(self.output_shape(shape))


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

    Attention is softmax(q k^T / sqrt(width / heads)) v, where a token sees itself and those before it. GELU is exact,
    x Φ(x), or GPT-2's: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). `qkv` gives q, k and v side by side, each
    with its heads side by side.
    """

    heads: int
    epsilon: float = 1e-5  # of both norms
    gelu: Literal["exact", "tanh"] = "exact"

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

    def kept(self, shape: Shape) -> int:
        """Return the numbers of the four Dense layers and of attention, whose weights are made anew."""
        return (3 + 1 + 1 + MLP_FACTOR + 1) * math.prod(shape)


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

    @property
    def takes_tokens(self) -> bool:
        """Whether a sample is whole numbers, and each token of it has a target."""
        return isinstance(self.layers[0], Embedding)

    @property
    def target_shape(self) -> Shape:
        """Of one sample's targets."""
        return self.input_shape if self.takes_tokens else ()

    @property
    def prompt(self) -> int:
        """The tokens that are in the cache before the first step of `decode`."""
        return self.input_shape[0] // 2

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
