"""Answers of a network of tokens in PyTorch: a prompt is read at once, then each step adds one token.

The cache of keys and values has fixed shapes, as in PyTorch's own generation loop, gpt-fast
(https://pytorch.org/blog/accelerating-generative-ai-2/).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch

from kit.backends.protocol import DeviceBatch, RankGroup
from kit.backends.torch.program import TorchBatch, TorchProgram
from kit.profile.cell import Cell
from kit.workloads import workload as kinds
from kit.workloads.seeded_arrays import HostBatch, Weights
from kit.workloads.workload import Workload


class TorchPrefill(TorchProgram):
    """Reads all tokens of a batch: its step keeps their keys and values, and returns the logits of the next token."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, ranks: RankGroup) -> None:
        super().__init__(workload, cell, weights, ranks)
        (tokens,), width = workload.input_shape, 0
        dtype = torch.bfloat16 if cell.precision == "bfloat16" else torch.float32
        self._caches: list[torch.Tensor] = []
        for placed in workload.placed_layers():
            if isinstance(placed.layer, kinds.DecoderBlock):
                width, heads = placed.input_shape[-1], placed.layer.heads
                shape = (2, self._batch_shape[0], heads, tokens, width // heads)
                self._caches.append(torch.zeros(shape, dtype=dtype, device=self._device))
                with suppress(AttributeError):  # private: a CUDA graph may then write it where it is
                    torch._dynamo.mark_static_address(self._caches[-1])

    def _logits(self, inputs: torch.Tensor) -> torch.Tensor:
        return self._model(inputs, self._caches)

    def _tensors(self, batch: HostBatch) -> TorchBatch:
        tokens, targets = (torch.from_numpy(array).to(self._device, torch.int64) for array in batch)
        return tokens, targets


class Answer:
    """What is being written: the last token of each sample, and where the next one goes."""

    def __init__(self, token: torch.Tensor, at: torch.Tensor, steps: int) -> None:
        self.token, self.at = token, at
        self._first, self._begin = token.clone(), at.clone()
        self._steps = self.left = steps

    def begin_again(self) -> None:
        """Go back to the end of the prompt."""
        self.token.copy_(self._first)
        self.at.copy_(self._begin)
        self.left = self._steps


class TorchDecoding(TorchPrefill):
    """Writes one token in each step; `put` reads the prompt."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, ranks: RankGroup) -> None:
        self._prompt, (self._length,) = workload.prompt, workload.input_shape
        super().__init__(workload, cell, weights, ranks)

    def put(self, batch: HostBatch) -> Any:  # noqa: ANN401 - a batch of this program
        """Read the first half of each sample. A program has one cache, so one batch at a time."""
        tokens, targets = self._tensors(batch)
        self._targets_at = str(targets.device)
        with torch.inference_mode():
            token = self._network(tokens[:, : self._prompt], self._caches).argmax(-1, keepdim=True)
        # No inference tensors: what is compiled may write them.
        at = torch.full((1,), self._prompt, device=self._device)
        answer = Answer(torch.zeros_like(tokens[:, :1]).copy_(token), at, self._length - self._prompt)
        self.synchronize()
        return answer

    def step(self, batch: DeviceBatch) -> torch.Tensor:
        """Write one token of each sample; return the logits of the next."""
        if not batch.left:
            batch.begin_again()
        batch.left -= 1
        if self._has_graphs:
            torch.compiler.cudagraph_mark_step_begin()
        with torch.inference_mode():
            return self._forward(batch.token, batch.at)

    def _logits(self, token: torch.Tensor, at: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        logits = self._model(token, self._caches, at)
        token.copy_(logits.argmax(-1, keepdim=True))
        at.add_(1)
        return logits
