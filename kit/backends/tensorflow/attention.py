"""The layers of a transformer in Keras."""

from __future__ import annotations

import keras
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


class DecoderBlock(keras.layers.Layer):  # type: ignore[misc]
    """See `kit.workloads.attention.DecoderBlock`."""

    def __init__(self, layer: kinds.DecoderBlock) -> None:
        super().__init__()
        self._block = layer

    def build(self, shape: Shape) -> None:
        """Make the parts for inputs of (batch, tokens, width), in the order of the workload's weights."""
        width = shape[-1]
        wide = kinds.MLP_FACTOR * width
        self.norm_1 = keras.layers.LayerNormalization(epsilon=self._block.epsilon)
        self.qkv = keras.layers.Dense(3 * width)
        self.projection = keras.layers.Dense(width)
        self.norm_2 = keras.layers.LayerNormalization(epsilon=self._block.epsilon)
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
        query, key, value = tf.unstack(qkv, axis=2)
        seen = keras.ops.dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(tf.reshape(seen, (-1, tokens, width)))
        return x + self.down(keras.activations.gelu(self.up(self.norm_2(x)), approximate=False))
