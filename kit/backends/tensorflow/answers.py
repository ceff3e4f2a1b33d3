"""Answers of a network of tokens in TensorFlow: a prompt is read at once, then each step adds one token.

Reading keeps keys and values as they come. In decoding they lie in variables of fixed shapes, as in KerasHub's
`CachedMultiHeadAttention`, which a graph writes where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from kit.backends.protocol import DeviceBatch
from kit.backends.tensorflow.layers import KerasDecoderBlock, KerasPositions
from kit.backends.tensorflow.program import TensorFlowProgram, Workers
from kit.profile.cell import Cell
from kit.workloads import workload as kinds
from kit.workloads.seeded_arrays import HostBatch, Weights
from kit.workloads.workload import Workload


class TensorFlowPrefill(TensorFlowProgram):
    """Reads all tokens of a batch: its step keeps their keys and values, and returns the logits of the next token."""

    _caches: list[list[Any]]

    def step(self, batch: DeviceBatch) -> tf.Tensor:
        """Read a batch; the keys and values of the last one are given up."""
        self._caches = []
        self._output, self._caches = super().step(batch)
        return self._output

    def _infer_step(self, inputs: tf.Tensor) -> tuple[tf.Tensor, list[list[tf.Tensor]]]:
        with self._device_scope():
            return self._with_caches(inputs)

    def _with_caches(
        self, x: tf.Tensor, caches: Sequence[list[tf.Variable]] = (), at: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, list[list[tf.Tensor]]]:
        """Return the logits of the last token (batch, vocabulary); see `KerasDecoderBlock.with_cache`."""
        *layers, logits = self._model.layers
        kept, made = iter(caches), []
        for layer in layers:
            if isinstance(layer, KerasDecoderBlock):
                x, keys_and_values = layer.with_cache(x, next(kept, ()), at)
                made.append(keys_and_values)
            else:
                x = layer(x, at) if isinstance(layer, KerasPositions) else layer(x)
        return tf.cast(logits(x[:, -1]), tf.float32), made


class TensorFlowDecoding(TensorFlowPrefill):
    """Writes one token in each step; `put` reads the prompt. There is one cache, so one batch at a time."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, seed: int, workers: Workers) -> None:
        super().__init__(workload, cell, weights, seed, workers)
        self._prompt, (self._length,) = workload.prompt, workload.input_shape
        dtype = tf.bfloat16 if cell.precision == "bfloat16" else tf.float32
        self._caches = []
        with self._device_scope():
            for placed in workload.placed_layers():
                if isinstance(placed.layer, kinds.DecoderBlock):
                    (tokens, width), heads = placed.input_shape, placed.layer.heads
                    zeros = tf.zeros((cell.batch, tokens, heads, width // heads), dtype)
                    self._caches.append([tf.Variable(zeros, trainable=False) for _ in range(2)])
            # int64: an accelerator keeps int32 in host memory.
            self._token = tf.Variable(tf.zeros((cell.batch, 1), tf.int64), trainable=False)
            self._at = tf.Variable(tf.zeros((), tf.int64), trainable=False)
        self._specs = []
        self._function = tf.function(self._on_device(self._decode_step), jit_compile=self._xla and not self._tpu)
        self._call = self._decode_step

    def put(self, batch: HostBatch) -> Any:  # noqa: ANN401 - a batch of this program
        """Read the first half of each sample."""
        tokens, targets = self._tensors(batch)
        self._targets_at = targets.backing_device
        logits, made = self._logits(tokens[:, : self._prompt])
        for cache, read in zip(self._caches, made, strict=True):
            for kept, new in zip(cache, read, strict=True):
                kept[:, : self._prompt].assign(new)
        self._token.assign(tf.argmax(logits, -1)[:, None])
        self._at.assign(self._prompt)
        self.synchronize()
        return tokens

    def step(self, batch: DeviceBatch) -> tf.Tensor:  # noqa: ARG002 - it is in the caches
        """Write one token of each sample; return the logits of the next. Behind the last place the first follows."""
        self._output = self._call()
        return self._output

    def _decode_step(self) -> tf.Tensor:
        with self._device_scope():
            at = self._at.read_value()
            logits, _ = self._with_caches(self._token.read_value(), self._caches, at)
            self._token.assign(tf.argmax(logits, -1)[:, None])
            self._at.assign(self._prompt + (at + 1 - self._prompt) % (self._length - self._prompt))
            return logits
