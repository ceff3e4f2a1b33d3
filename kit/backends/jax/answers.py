"""Answers of a network of tokens in JAX: a prompt is read at once, then each step adds one token.

Reading keeps keys and values as they come. In decoding they lie in caches of fixed shapes, which are donated to each
step, as in MaxText's decoding (https://github.com/AI-Hypercomputer/maxtext).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from kit.backends.jax.layers import FlaxDecoderBlock, FlaxPositions, KeysAndValues
from kit.backends.jax.program import JaxProgram, Leaves, Mesh, computed_in
from kit.backends.protocol import DeviceBatch
from kit.profile.cell import Cell
from kit.workloads import workload as kinds
from kit.workloads.seeded_arrays import HostBatch, Weights
from kit.workloads.workload import Workload

Caches = list[KeysAndValues]


class JaxPrefill(JaxProgram):
    """Reads all tokens of a batch: its step keeps their keys and values, and returns the logits of the next token."""

    _caches: Caches

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, seed: int, mesh: Mesh) -> None:
        super().__init__(workload, cell, weights, seed, mesh)
        # Whoever serves a network in bfloat16 keeps its weights so: a token would convert all of them.
        self._leaves = [
            leaf.astype(computed_in(cell.precision)) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf
            for leaf in self._leaves
        ]

    def step(self, batch: DeviceBatch) -> jax.Array:
        """Read a batch; the keys and values of the last one are given up."""
        self._caches = []
        self._output, self._caches = super().step(batch)
        return self._output

    def _infer_step(self, leaves: Leaves, inputs: jax.Array, _targets: jax.Array) -> tuple[jax.Array, Caches]:
        return self._with_caches(leaves, inputs)

    def _with_caches(
        self, leaves: Leaves, x: jax.Array, caches: Sequence[KeysAndValues] = (), at: jax.Array | None = None
    ) -> tuple[jax.Array, Caches]:
        """Return the logits of the last token (batch, vocabulary); see `FlaxDecoderBlock.with_cache`."""
        params, rest, _ = jax.tree.unflatten(self._tree, leaves)
        *layers, logits = nnx.merge(self._eval_graph, params, rest).layers
        kept, made = iter(caches), []
        for layer in layers:
            if isinstance(layer, FlaxDecoderBlock):
                x, keys_and_values = layer.with_cache(x, next(kept, None), at)
                made.append(keys_and_values)
            else:
                x = layer(x, at) if isinstance(layer, FlaxPositions) else layer(x)
        return logits(x[:, -1]).astype(jnp.float32), made


class JaxDecoding(JaxPrefill):
    """Writes one token in each step; `put` reads the prompt. There is one cache, so one batch at a time."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, seed: int, mesh: Mesh) -> None:
        self._prompt, (self._length,) = workload.prompt, workload.input_shape
        self._blocks = [
            (placed.layer.heads, placed.input_shape[-1] // placed.layer.heads)
            for placed in workload.placed_layers()
            if isinstance(placed.layer, kinds.DecoderBlock)
        ]
        self._computed_in = computed_in(cell.precision)
        super().__init__(workload, cell, weights, seed, mesh)

    def put(self, batch: HostBatch) -> Any:  # noqa: ANN401 - a batch of this program
        """Read the first half of each sample."""
        resident = super().put(HostBatch(np.ascontiguousarray(batch.inputs[:, : self._prompt]), batch.targets))
        logits, made = self._logits(self._leaves, *resident)
        room = (0, 0), (0, self._length - self._prompt), (0, 0), (0, 0)
        self._caches = jax.tree.map(lambda read: jnp.pad(read, room), made)
        self._token = logits.argmax(-1, keepdims=True).astype(np.int32)
        self._at = self._mesh.put_everywhere(np.int32(self._prompt))
        jax.block_until_ready((self._caches, self._token, self._at))
        return resident

    def trace(self) -> bool:
        """Trace the step of one token."""
        batch, everywhere = self._batch_shape[0], self._mesh.everywhere
        tokens = jax.ShapeDtypeStruct((batch, 1), np.int32, sharding=self._mesh.split)
        at = jax.ShapeDtypeStruct((), np.int32, sharding=everywhere)
        arrays = [
            jax.ShapeDtypeStruct((batch, self._length, *block), self._computed_in, sharding=everywhere)
            for block in self._blocks
        ]
        jitted = jax.jit(self._decode_step, donate_argnums=1)
        self._traced = jitted.trace(self._leaves, [(array, array) for array in arrays], tokens, at).lower()
        return True

    def step(self, batch: DeviceBatch) -> jax.Array:  # noqa: ARG002 - it is in the caches
        """Write one token of each sample; return the logits of the next. Behind the last place the first follows."""
        self._output, self._caches, self._token, self._at = self._executable(
            self._leaves, self._caches, self._token, self._at
        )
        return self._output

    def _decode_step(
        self, leaves: Leaves, caches: Caches, token: jax.Array, at: jax.Array
    ) -> tuple[jax.Array, Caches, jax.Array, jax.Array]:
        logits, caches = self._with_caches(leaves, token, caches, at)
        following = self._prompt + (at + 1 - self._prompt) % (self._length - self._prompt)
        return logits, caches, logits.argmax(-1, keepdims=True).astype(np.int32), following
