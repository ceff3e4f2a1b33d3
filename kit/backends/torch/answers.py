"""Answers of a network of tokens in PyTorch: a prompt is read at once, then each step adds one token.

Reading keeps keys and values as they come. In decoding they lie in caches of fixed shapes, as in PyTorch's own
generation loop, gpt-fast (https://pytorch.org/blog/accelerating-generative-ai-2/).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch

from kit.backends.protocol import DeviceBatch, RankGroup
from kit.backends.torch.layers import KeysAndValues
from kit.backends.torch.program import TorchBatch, TorchProgram
from kit.profile.cell import Cell
from kit.workloads import workload as kinds
from kit.workloads.seeded_arrays import HostBatch, Weights
from kit.workloads.workload import Workload


class TorchPrefill(TorchProgram):
    """Reads all tokens of a batch: its step keeps their keys and values, and returns the logits of the next token."""

    _caches: list[KeysAndValues]

    def step(self, batch: DeviceBatch) -> torch.Tensor:
        """Read a batch; the keys and values of the last one are given up."""
        self._caches = []
        logits, self._caches = super().step(batch)
        return logits

    def _tensors(self, batch: HostBatch) -> TorchBatch:
        tokens, targets = (torch.from_numpy(array).to(self._device, torch.int64) for array in batch)
        return tokens, targets


class TorchDecoding(TorchPrefill):
    """Writes one token in each step; `put` reads the prompt. There is one cache, so one batch at a time."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, ranks: RankGroup) -> None:
        self._prompt, (self._length,) = workload.prompt, workload.input_shape
        super().__init__(workload, cell, weights, ranks)
        dtype = torch.bfloat16 if cell.precision == "bfloat16" else torch.float32
        self._caches = []
        for placed in workload.placed_layers():
            if isinstance(placed.layer, kinds.DecoderBlock):
                (tokens, width), heads = placed.input_shape, placed.layer.heads
                key, value = torch.zeros((2, cell.batch, heads, tokens, width // heads), dtype=dtype).to(self._device)
                self._caches.append((key.clone(), value.clone()))
        self._token = torch.zeros((cell.batch, 1), dtype=torch.int64, device=self._device)
        self._at = torch.zeros(1, dtype=torch.int64, device=self._device)
        for written in (self._token, self._at, *(tensor for cache in self._caches for tensor in cache)):
            with suppress(AttributeError):  # private: a CUDA graph may then write it where it is
                torch._dynamo.mark_static_address(written)

    def put(self, batch: HostBatch) -> Any:  # noqa: ANN401 - a batch of this program
        """Read the first half of each sample."""
        tokens, targets = self._tensors(batch)
        self._targets_at = str(targets.device)
        with torch.inference_mode():
            logits, made = self._network(tokens[:, : self._prompt])
            for cache, read in zip(self._caches, made, strict=True):
                for kept, new in zip(cache, read, strict=True):
                    kept[:, :, : self._prompt].copy_(new)
            self._token.copy_(logits.argmax(-1, keepdim=True))
            self._at.fill_(self._prompt)
        self.synchronize()
        return tokens

    def step(self, batch: DeviceBatch) -> torch.Tensor:  # noqa: ARG002 - it is in the caches
        """Write one token of each sample; return the logits of the next. Behind the last place the first follows."""
        if self._has_graphs:
            torch.compiler.cudagraph_mark_step_begin()
        with torch.inference_mode():
            return self._forward()

    def _logits(self) -> torch.Tensor:  # type: ignore[override]
        logits, _ = self._model(self._token, self._caches, self._at)
        self._token.copy_(logits.argmax(-1, keepdim=True))
        self._at.copy_(self._prompt + (self._at + 1 - self._prompt) % (self._length - self._prompt))
        return logits
