"""Answers of a network of tokens in JAX: a prompt is read at once, then each step adds one token.

The cache of keys and values has fixed shapes and is donated to each step, as in MaxText's decoding
(https://github.com/AI-Hypercomputer/maxtext).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from kit.backends.jax.layers import FlaxDecoderBlock, FlaxPositions
from kit.backends.jax.program import JaxProgram, Leaves, Mesh, computed_in
from kit.backends.protocol import DeviceBatch
from kit.profile.cell import Cell
from kit.workloads import workload as kinds
from kit.workloads.seeded_arrays import HostBatch, Weights
from kit.workloads.workload import Workload

Cache = list[jax.Array]


class JaxPrefill(JaxProgram):
    """Reads all tokens of a batch: its step returns the logits of the next token, and makes their keys and values."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, seed: int, mesh: Mesh) -> None:
        (tokens,), dtype = workload.input_shape, computed_in(cell.precision)
        self._cache_shapes = [
            jax.ShapeDtypeStruct(
                (2, cell.batch, tokens, placed.layer.heads, placed.input_shape[-1] // placed.layer.heads), dtype
            )
            for placed in workload.placed_layers()
            if isinstance(placed.layer, kinds.DecoderBlock)
        ]
        super().__init__(workload, cell, weights, seed, mesh)

    def step(self, batch: DeviceBatch) -> jax.Array:
        """Read a batch; the caches of the last one are given up."""
        if self._host_feed:
            batch = self._mesh.put_split(batch)
        self._output, self._caches = self._executable(self._leaves, *batch)
        return self._output

    def _infer_step(self, leaves: Leaves, inputs: jax.Array, _targets: jax.Array) -> tuple[jax.Array, Cache]:
        caches = [jnp.zeros(like.shape, like.dtype) for like in self._cache_shapes]
        return self._with_caches(leaves, inputs, caches)

    def _with_caches(
        self, leaves: Leaves, x: jax.Array, caches: Cache, at: jax.Array | None = None
    ) -> tuple[jax.Array, Cache]:
        """Return the logits of the last token (batch, vocabulary); see `FlaxDecoderBlock.with_cache`."""
        params, rest, _ = jax.tree.unflatten(self._tree, leaves)
        *layers, logits = nnx.merge(self._eval_graph, params, rest).layers
        old, new = iter(caches), []
        for layer in layers:
            if isinstance(layer, FlaxDecoderBlock):
                x, cache = layer.with_cache(x, next(old), at)
                new.append(cache)
            else:
                x = layer(x, at) if isinstance(layer, FlaxPositions) else layer(x)
        return logits(x[:, -1]).astype(jnp.float32), new


class Answer:
    """What is being written: the caches, the last token of each sample (batch, 1), and where the next one goes."""

    def __init__(self, caches: Cache, token: jax.Array, at: jax.Array, steps: int) -> None:
        self.caches, self.token, self.at = caches, token, at
        self._begin = token, at
        self._steps = self.left = steps

    def begin_again(self) -> None:
        """Go back to the end of the prompt."""
        self.token, self.at = self._begin
        self.left = self._steps


class JaxDecoding(JaxPrefill):
    """Writes one token in each step; `put` reads the prompt."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, seed: int, mesh: Mesh) -> None:
        self._prompt, (self._length,) = workload.prompt, workload.input_shape
        super().__init__(workload, cell, weights, seed, mesh)

    def put(self, batch: HostBatch) -> Any:  # noqa: ANN401 - a batch of this program
        """Read the first half of each sample."""
        resident = super().put(HostBatch(np.ascontiguousarray(batch.inputs[:, : self._prompt]), batch.targets))
        logits, caches = self._logits(self._leaves, *resident)
        token = logits.argmax(-1, keepdims=True).astype(np.int32)
        at = self._mesh.put_everywhere(np.int32(self._prompt))
        jax.block_until_ready((caches, token, at))
        return Answer(caches, token, at, self._length - self._prompt)

    def trace(self) -> bool:
        """Trace the step of one token."""
        tokens = jax.ShapeDtypeStruct((self._batch_shape[0], 1), np.int32, sharding=self._mesh.split)
        at = jax.ShapeDtypeStruct((), np.int32, sharding=self._mesh.everywhere)
        caches = [
            jax.ShapeDtypeStruct(like.shape, like.dtype, sharding=self._mesh.everywhere) for like in self._cache_shapes
        ]
        jitted = jax.jit(self._decode_step, donate_argnums=1)
        self._traced = jitted.trace(self._leaves, caches, tokens, at).lower()
        return True

    def step(self, batch: DeviceBatch) -> jax.Array:
        """Write one token of each sample; return the logits of the next."""
        if not batch.left:
            batch.begin_again()
        batch.left -= 1
        self._output, batch.caches, batch.token, batch.at = self._executable(
            self._leaves, batch.caches, batch.token, batch.at
        )
        return self._output

    def _decode_step(
        self, leaves: Leaves, caches: Cache, token: jax.Array, at: jax.Array
    ) -> tuple[jax.Array, Cache, jax.Array, jax.Array]:
        logits, caches = self._with_caches(leaves, token, caches, at)
        return logits, caches, logits.argmax(-1, keepdims=True).astype(np.int32), at + 1
