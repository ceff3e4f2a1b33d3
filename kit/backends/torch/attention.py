"""The layers of a transformer in PyTorch, attention by its fused kernel."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from kit.workloads import attention as kinds


class Positions(nn.Module):  # type: ignore[misc]
    """Adds a table of (tokens, width)."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(tokens, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, tokens, width)."""
        return x + self.table


class LastToken(nn.Module):  # type: ignore[misc]
    """Takes the last token."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, width) for (batch, tokens, width)."""
        return x[:, -1]


class DecoderBlock(nn.Module):  # type: ignore[misc]
    """See `kit.workloads.attention.DecoderBlock`; its parts have the names that their weights begin with."""

    def __init__(self, width: int, layer: kinds.DecoderBlock) -> None:
        super().__init__()
        self._heads = layer.heads
        self.norm_1 = nn.LayerNorm(width, eps=layer.epsilon)
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width, eps=layer.epsilon)
        self.up = nn.Linear(width, kinds.MLP_FACTOR * width)
        self.down = nn.Linear(kinds.MLP_FACTOR * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, tokens, width)."""
        qkv = self.qkv(self.norm_1(x)).unflatten(-1, (3, self._heads, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind()  # each (batch, heads, tokens, width / heads)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(seen.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))
