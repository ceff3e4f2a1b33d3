"""Answers of a network of tokens in TensorFlow: a prompt is read at once, then each step adds one token.

The cache of keys and values has fixed shapes, as in KerasHub's `CachedMultiHeadAttention`; it is made of variables, so
that a graph writes it where it is.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kit.backends.protocol import DeviceBatch
from kit.backends.tensorflow.layers import Cache, KerasDecoderBlock, KerasPositions
from kit.backends.tensorflow.program import TensorFlowProgram, Workers
from kit.profile.cell import Cell
from kit.workloads import workload as kinds
from kit.workloads.seeded_arrays import HostBatch, Weights
from kit.workloads.workload import Workload


class TensorFlowPrefill(TensorFlowProgram):
    """Reads all tokens of a batch: its step keeps their keys and values, and returns the logits of the next token."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, seed: int, workers: Workers) -> None:
        super().__init__(workload, cell, weights, seed, workers)
        dtype = tf.bfloat16 if cell.precision == "bfloat16" else tf.float32
        self._caches: list[Cache] = []
        with self._device_scope():
            for placed in workload.placed_layers():
                if isinstance(placed.layer, kinds.DecoderBlock):
                    (tokens, width), heads = placed.input_shape, placed.layer.heads
                    zeros = tf.zeros((cell.batch, tokens, heads, width // heads), dtype)
                    self._caches.append([tf.Variable(zeros, trainable=False) for _ in range(2)])

    def _infer_step(self, inputs: tf.Tensor) -> tf.Tensor:
        with self._device_scope():
            return self._with_caches(inputs)

    def _with_caches(self, x: tf.Tensor, at: tf.Tensor | None = None) -> tf.Tensor:
        """Return the logits of the last token (batch, vocabulary); see `KerasDecoderBlock.with_cache`."""
        *layers, logits = self._model.layers
        caches = iter(self._caches)
        for layer in layers:
            if isinstance(layer, KerasDecoderBlock):
                x = layer.with_cache(x, next(caches), at)
            else:
                x = layer(x, at) if isinstance(layer, KerasPositions) else layer(x)
        return tf.cast(logits(x[:, -1]), tf.float32)


class Answer:
    """What is being written: the last token of each sample (batch, 1), and where the next one goes."""

    def __init__(self, token: tf.Variable, at: tf.Variable, steps: int) -> None:
        self.token, self.at = token, at
        self._first, self._begin = tf.identity(token), tf.identity(at)
        self._steps = self.left = steps

    def begin_again(self) -> None:
        """Go back to the end of the prompt."""
        self.token.assign(self._first)
        self.at.assign(self._begin)
        self.left = self._steps


class TensorFlowDecoding(TensorFlowPrefill):
    """Writes one token in each step; `put` reads the prompt."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, seed: int, workers: Workers) -> None:
        super().__init__(workload, cell, weights, seed, workers)
        self._prompt, (self._length,) = workload.prompt, workload.input_shape
        with self._device_scope():
            # int64: an accelerator keeps int32 in host memory.
            self._token = tf.Variable(tf.zeros((cell.batch, 1), tf.int64), trainable=False)
            self._at = tf.Variable(tf.zeros((), tf.int64), trainable=False)
        self._specs = []
        self._function = tf.function(self._on_device(self._decode_step), jit_compile=self._xla and not self._tpu)
        self._call = self._decode_step

    def put(self, batch: HostBatch) -> Any:  # noqa: ANN401 - a batch of this program
        """Read the first half of each sample. A program has one cache, so one batch at a time."""
        tokens, targets = self._tensors(batch)
        self._targets_at = targets.backing_device
        self._token.assign(tf.argmax(self._logits(tokens[:, : self._prompt]), -1)[:, None])
        self._at.assign(self._prompt)
        answer = Answer(self._token, self._at, self._length - self._prompt)
        self.synchronize()
        return answer

    def step(self, batch: DeviceBatch) -> tf.Tensor:
        """Write one token of each sample; return the logits of the next."""
        if not batch.left:
            batch.begin_again()
        batch.left -= 1
        self._output = self._call()
        return self._output

    def _decode_step(self) -> tf.Tensor:
        with self._device_scope():
            logits = self._with_caches(self._token.read_value(), tf.cast(self._at.read_value(), tf.int32))
            self._token.assign(tf.argmax(logits, -1)[:, None])
            self._at.assign_add(1)
            return logits
