"""A workload as Keras layers, channels last like the workload, and its optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import keras
import numpy as np
import tensorflow as tf

from kit.backends.tensorflow.about import ENTRY
from kit.profile.cell import Cell
from kit.workloads import workload as kinds
from kit.workloads.seeded_arrays import Weights
from kit.workloads.workload import PlacedLayer, Shape, Workload


class KerasPositions(keras.layers.Layer):  # type: ignore[misc]
    """Adds a table of (tokens, width)."""

    def build(self, shape: Shape) -> None:
        """Make the table for inputs of (batch, tokens, width)."""
        self.table = self.add_weight(shape=shape[1:], name="table")

    def call(self, x: tf.Tensor, at: tf.Tensor | None = None) -> tf.Tensor:
        """Return (batch, tokens, width); with `at` (), of the one token there."""
        table = tf.convert_to_tensor(self.table)
        # A slice at a place that varies would be compiled anew for each place by XLA.
        return x + (table[: x.shape[1]] if at is None else tf.gather(table, at)[None])


class KerasDecoderBlock(keras.layers.Layer):  # type: ignore[misc]
    """See `kit.workloads.workload.DecoderBlock`; made as the decoder of TensorFlow's tutorial on transformers.

    https://www.tensorflow.org/text/tutorials/transformer
    """

    def __init__(self, layer: kinds.DecoderBlock, width: int) -> None:
        super().__init__()
        self.norm_1 = keras.layers.LayerNormalization(epsilon=layer.epsilon)
        self.attention = keras.layers.MultiHeadAttention(layer.heads, width // layer.heads)
        self.norm_2 = keras.layers.LayerNormalization(epsilon=layer.epsilon)
        gelu = partial(keras.activations.gelu, approximate=layer.gelu == "tanh")
        self.up = keras.layers.Dense(kinds.MLP_FACTOR * width, gelu)
        self.down = keras.layers.Dense(width)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return (batch, tokens, width)."""
        normed = self.norm_1(x)
        x = x + self.attention(normed, normed, use_causal_mask=True)
        return x + self.down(self.up(self.norm_2(x)))

    def with_cache(
        self, x: tf.Tensor, cache: Sequence[tf.Variable] = (), at: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return (batch, tokens, width), and the keys and values, each (batch, tokens, heads, width of a head).

        Args:
            x: (batch, tokens, width).
            cache: those of all places, which get those of the one token of `x`; none: `x` is all there is.
            at: (), the place of that token.
        """
        normed, attention = self.norm_1(x), self.attention
        key, value = attention.key_dense(normed), attention.value_dense(normed)
        mask = None
        if at is not None:
            samples = tf.range(x.shape[0], dtype=at.dtype)
            places = tf.stack([samples, tf.fill(samples.shape, at)], axis=1)
            for kept, new in zip(cache, (key, value), strict=True):
                # Assigned to a slice, XLA would compile the step anew for each place.
                kept.scatter_nd_update(places, new[:, 0])
            key, value = (tf.convert_to_tensor(kept) for kept in cache)
            mask = (tf.range(key.shape[1], dtype=at.dtype) <= at)[None, None, None]
        query = attention.query_dense(normed)
        seen = keras.ops.dot_product_attention(query, key, value, mask=mask, is_causal=mask is None)
        x = x + attention.output_dense(seen)
        return x + self.down(self.up(self.norm_2(x))), [key, value]


class KerasTiedLogits(keras.layers.Layer):  # type: ignore[misc]
    """Multiplies with the table of an embedding, which has the table's weights."""

    def __init__(self, embedding: keras.layers.Embedding) -> None:
        super().__init__()
        # As an attribute the embedding's table would be a weight of this layer, too.
        self._table: Callable[[], tf.Variable] = lambda: embedding.embeddings

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return (batch, tokens, vocabulary) for (batch, tokens, width)."""
        table = keras.ops.cast(self._table(), self.compute_dtype)
        return keras.ops.matmul(x, keras.ops.transpose(table))


class KerasNormed(keras.layers.Layer):  # type: ignore[misc]
    """A convolution without a bias, and batch norm; padded apart, as in Keras Applications' residual networks."""

    def __init__(self, filters: int, side: int, stride: int, layer: kinds.ConvolutionStem | kinds.Bottleneck) -> None:
        super().__init__()
        # At stride 1 Keras' own padding is the same on all sides.
        padding = "same" if stride == 1 else "valid"
        self.pad = keras.layers.ZeroPadding2D(side // 2) if stride > 1 and side > 1 else None
        self.conv = keras.layers.Conv2D(filters, side, stride, padding, use_bias=False)
        self.norm = keras.layers.BatchNormalization(momentum=layer.momentum, epsilon=layer.epsilon)

    def call(self, x: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Return (batch, height, width, filters)."""
        return self.norm(self.conv(x if self.pad is None else self.pad(x)), training=training)


class KerasStem(keras.layers.Layer):  # type: ignore[misc]
    """See `kit.workloads.workload.ConvolutionStem`. Behind a ReLU, padding with zeros leaves each maximum as it is."""

    def __init__(self, layer: kinds.ConvolutionStem) -> None:
        super().__init__()
        self.normed = KerasNormed(layer.filters, 7, 2, layer)
        self.pad = keras.layers.ZeroPadding2D(1)
        self.pool = keras.layers.MaxPooling2D(3, 2)

    def call(self, x: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Return (batch, height, width, filters)."""
        return self.pool(self.pad(tf.nn.relu(self.normed(x, training=training))))


class KerasBottleneck(keras.layers.Layer):  # type: ignore[misc]
    """See `kit.workloads.workload.Bottleneck`."""

    def __init__(self, shape: Shape, layer: kinds.Bottleneck) -> None:
        super().__init__()
        wide = layer.output_shape(shape)[-1]
        self.narrow = KerasNormed(layer.filters, 1, 1, layer)
        self.middle = KerasNormed(layer.filters, 3, layer.stride, layer)
        self.wide = KerasNormed(wide, 1, 1, layer)
        self.shortcut = KerasNormed(wide, 1, layer.stride, layer) if layer.widens(shape) else None

    def call(self, x: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Return (batch, height, width, 4 filters)."""
        narrow = tf.nn.relu(self.narrow(x, training=training))
        middle = tf.nn.relu(self.middle(narrow, training=training))
        shortcut = x if self.shortcut is None else self.shortcut(x, training=training)
        return tf.nn.relu(self.wide(middle, training=training) + shortcut)


def build_model(workload: Workload, cell: Cell, weights: Weights, seed: int) -> keras.Sequential:
    """Return the network with `weights` in it; `seed` is for dropout."""
    layers: list[keras.layers.Layer] = []
    for index, placed in enumerate(workload.placed_layers()):
        is_tied = isinstance(placed.layer, kinds.TiedLogits)
        layers.append(KerasTiedLogits(layers[0]) if is_tied else _translate(placed, cell, seed + index))
    inputs = keras.Input(workload.input_shape, dtype="int32" if workload.takes_tokens else "float32")
    model = keras.Sequential([inputs, *layers])
    for placed, layer in zip(workload.placed_layers(), model.layers, strict=True):
        arrays = [weights[f"{placed.name}.{name}"] for name in placed.weights]
        if isinstance(placed.layer, kinds.DecoderBlock):
            # Keras keeps query, key and value apart, each with its kernel and its bias.
            scale, offset, kernel, bias, *others = arrays
            pairs = zip(np.split(kernel, 3, axis=1), np.split(bias, 3), strict=True)
            arrays = [scale, offset, *(array for pair in pairs for array in pair), *others]
        for variable, array in zip(layer.trainable_variables, arrays, strict=True):  # in the same order
            variable.assign(array.reshape(variable.shape))
    return model


def build_optimizer(rule: kinds.Optimizer) -> keras.optimizers.Optimizer:
    """Return the Keras optimizer of that name, every hyperparameter given."""
    match rule:
        case kinds.SGD(rate):
            return keras.optimizers.SGD(rate)
        case kinds.RMSprop(rate, rho, epsilon):
            return keras.optimizers.RMSprop(rate, rho=rho, epsilon=epsilon)
        case kinds.Adadelta(rate, rho, epsilon):
            return keras.optimizers.Adadelta(rate, rho=rho, epsilon=epsilon)
        case kinds.Adam(rate, beta_1, beta_2, epsilon):
            return keras.optimizers.Adam(rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon)


def _translate(placed: PlacedLayer, cell: Cell, seed: int) -> keras.layers.Layer:  # noqa: PLR0911, PLR0912 - one a kind
    match layer := placed.layer:
        case kinds.Dense():
            return keras.layers.Dense(layer.units, layer.activation)
        case kinds.Conv2D():
            return keras.layers.Conv2D(layer.filters, layer.kernel, activation=layer.activation, padding=layer.padding)
        case kinds.MaxPool2D():
            return keras.layers.MaxPooling2D(layer.size)
        case kinds.Dropout():
            return keras.layers.Dropout(layer.rate, seed=seed)
        case kinds.Flatten():
            return keras.layers.Flatten()
        case kinds.SimpleRNN():
            return keras.layers.SimpleRNN(layer.units)
        case kinds.LSTM():
            # XLA compiles no call into cuDNN, and Keras checks only for a GPU, not for XLA.
            use_cudnn = False if cell.compile_mode == "xla" else "auto"
            lstm = keras.layers.LSTM(layer.units, return_sequences=layer.sequences, use_cudnn=use_cudnn)
            return keras.layers.Bidirectional(lstm) if layer.bidirectional else lstm
        case kinds.Positions():
            return KerasPositions()
        case kinds.LayerNorm():
            return keras.layers.LayerNormalization(epsilon=layer.epsilon)
        case kinds.DecoderBlock():
            return KerasDecoderBlock(layer, placed.input_shape[-1])
        case kinds.LastToken():
            return keras.layers.Lambda(lambda x: x[:, -1])
        case kinds.Embedding():
            return keras.layers.Embedding(layer.vocabulary, layer.width)
        case kinds.ConvolutionStem():
            return KerasStem(layer)
        case kinds.Bottleneck():
            return KerasBottleneck(placed.input_shape, layer)
        case kinds.AveragePool():
            return keras.layers.GlobalAveragePooling2D()
        case _:
            raise ENTRY.untranslated(layer)
