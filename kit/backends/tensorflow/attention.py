"""The layers of a transformer in Keras, attention and norms in TensorFlow's own operations.

On a CPU, at batch 128, two blocks so took 0.81 to 0.90 of the time of two with keras.layers.MultiHeadAttention, and of
the time with keras.ops.dot_product_attention, whose heads lie behind the tokens, 0.79 to 0.88.
"""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from kit.workloads import attention as kinds
from kit.workloads.layers import Shape


class Positions(keras.layers.Layer):  # type: ignore[misc]
    """Adds a table of (tokens, width)."""

    def build(self, shape: Shape) -> None:
        """Make the table for inputs of (batch, tokens, width)."""
        self.table = self.add_weight(shape=shape[1:], name="table")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return (batch, tokens, width)."""
        return x + tf.convert_to_tensor(self.table)


class LastToken(keras.layers.Layer):  # type: ignore[misc]
    """Takes the last token."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return (batch, width) for (batch, tokens, width)."""
        return x[:, -1]


class LayerNorm(keras.layers.LayerNormalization):  # type: ignore[misc]
    """Keras' weights, without its detour over the operation of a batch normalization."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return `x` in its shape."""
        whole = tf.cast(x, tf.float32)  # the mean of many squares is not to be one of bfloat16
        centred = whole - tf.reduce_mean(whole, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
        normed = tf.cast(centred * tf.math.rsqrt(variance + self.epsilon), x.dtype)
        return normed * self.gamma + self.beta


class DecoderBlock(keras.layers.Layer):  # type: ignore[misc]
    """See `kit.workloads.attention.DecoderBlock`."""

    def __init__(self, layer: kinds.DecoderBlock) -> None:
        super().__init__()
        self._block = layer

    def build(self, shape: Shape) -> None:
        """Make the parts for inputs of (batch, tokens, width), in the order of the workload's weights."""
        width = shape[-1]
        wide = kinds.MLP_FACTOR * width
        self.norm_1 = LayerNorm(epsilon=self._block.epsilon)
        self.qkv = keras.layers.Dense(3 * width)
        self.projection = keras.layers.Dense(width)
        self.norm_2 = LayerNorm(epsilon=self._block.epsilon)
        self.up = keras.layers.Dense(wide)
        self.down = keras.layers.Dense(width)
        for part in (self.norm_1, self.qkv, self.projection, self.norm_2, self.up):
            part.build(shape)
        self.down.build((*shape[:-1], wide))

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return (batch, tokens, width)."""
        _, tokens, width = x.shape
        heads = self._block.heads
        qkv = tf.reshape(self.qkv(self.norm_1(x)), (-1, tokens, 3, heads, width // heads))
        query, key, value = tf.unstack(tf.transpose(qkv, (2, 0, 3, 1, 4)))
        scores = tf.matmul(query * (width // heads) ** -0.5, key, transpose_b=True)
        future = np.triu(np.full((tokens, tokens), -1e30, np.float32), 1)
        shares = tf.nn.softmax(tf.cast(scores, tf.float32) + future)
        seen = tf.matmul(tf.cast(shares, value.dtype), value)
        x = x + self.projection(tf.reshape(tf.transpose(seen, (0, 2, 1, 3)), (-1, tokens, width)))
        return x + self.down(tf.nn.gelu(self.up(self.norm_2(x)), approximate=False))
