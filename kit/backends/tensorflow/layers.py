"""A workload as Keras layers, channels last like the workload, and its optimizer."""

from __future__ import annotations

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

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return (batch, tokens, width)."""
        return x + tf.convert_to_tensor(self.table)


class KerasDecoderBlock(keras.layers.Layer):  # type: ignore[misc]
    """See `kit.workloads.workload.DecoderBlock`; made as the decoder of TensorFlow's tutorial on transformers.

    https://www.tensorflow.org/text/tutorials/transformer
    """

    def __init__(self, layer: kinds.DecoderBlock, width: int) -> None:
        super().__init__()
        self.norm_1 = keras.layers.LayerNormalization(epsilon=layer.epsilon)
        self.attention = keras.layers.MultiHeadAttention(layer.heads, width // layer.heads)
        self.norm_2 = keras.layers.LayerNormalization(epsilon=layer.epsilon)
        self.up = keras.layers.Dense(kinds.MLP_FACTOR * width, "gelu")
        self.down = keras.layers.Dense(width)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return (batch, tokens, width)."""
        normed = self.norm_1(x)
        x = x + self.attention(normed, normed, use_causal_mask=True)
        return x + self.down(self.up(self.norm_2(x)))


def build_model(workload: Workload, cell: Cell, weights: Weights, seed: int) -> keras.Sequential:
    """Return the network with `weights` in it; `seed` is for dropout."""
    layers = [_translate(placed, cell, seed + index) for index, placed in enumerate(workload.placed_layers())]
    model = keras.Sequential([keras.Input(workload.input_shape, dtype="float32"), *layers])
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


def _translate(placed: PlacedLayer, cell: Cell, seed: int) -> keras.layers.Layer:  # noqa: PLR0911 - one a kind of layer
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
        case _:
            raise ENTRY.untranslated(layer)
