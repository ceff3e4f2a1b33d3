"""Precision bfloat16 in PyTorch: autocast around the forward pass; weights, loss and update are float32."""

from __future__ import annotations

import torch
from torch import nn


class InBfloat16(nn.Module):  # type: ignore[misc]
    """A network under autocast, whose output is float32."""

    def __init__(self, network: nn.Module, device: str) -> None:
        super().__init__()
        self._network = network
        self._device = device

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the network makes of `x`."""
        with torch.autocast(self._device, torch.bfloat16):
            output: torch.Tensor = self._network(x)
        return output.float()
