"""The layers of a transformer in PyTorch, attention by its fused kernel, or by two products of few tokens on a CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from kit.workloads import attention as kinds

# The fused kernel of a CPU saves memory. Two products took 0.90 of a training step's time and 0.79 of an inference
# step's at 28 tokens, 0.99 and 0.96 at 112; at 784 the scores of a batch of 128 would be 1.3 GB.
UNFUSED_TOKENS_MAX = 112


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
        seen = attend(*qkv.permute(2, 0, 3, 1, 4).unbind())
        x = x + self.projection(seen.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return what each token takes from itself and those before it; all are (batch, heads, tokens, width / heads)."""
    tokens = query.shape[-2]
    if query.is_cuda or tokens > UNFUSED_TOKENS_MAX:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)
    future = query.new_full((tokens, tokens), -torch.inf).triu(1)
    return ((query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2) + future).softmax(-1) @ value
