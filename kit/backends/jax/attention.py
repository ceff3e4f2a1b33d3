"""The layers of a transformer in Flax NNX, attention by `jax.nn.dot_product_attention`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from kit.backends.jax.weighted import dense, norm
from kit.workloads import attention as kinds
from kit.workloads.weights import Weights


class Positions(nnx.Module):  # type: ignore[misc]
    """Adds a table of (tokens, width)."""

    def __init__(self, weights: Weights) -> None:
        self.table = nnx.Param(jnp.array(weights["table"]))

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return (batch, tokens, width)."""
        return x + self.table[...]


class DecoderBlock(nnx.Module):  # type: ignore[misc]
    """See `kit.workloads.attention.DecoderBlock`."""

    def __init__(self, layer: kinds.DecoderBlock, weights: Weights, rngs: nnx.Rngs) -> None:
        self.heads = layer.heads
        self.norm_1 = norm(weights, layer.epsilon, rngs, "norm_1_")
        self.qkv = dense(weights, rngs, "qkv_")
        self.projection = dense(weights, rngs, "projection_")
        self.norm_2 = norm(weights, layer.epsilon, rngs, "norm_2_")
        self.up = dense(weights, rngs, "up_")
        self.down = dense(weights, rngs, "down_")

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return (batch, tokens, width)."""
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm_1(x)).reshape(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = (qkv[:, :, index] for index in range(3))
        seen = jax.nn.dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(seen.reshape(batch, tokens, width))
        return x + self.down(jax.nn.gelu(self.up(self.norm_2(x)), approximate=False))
