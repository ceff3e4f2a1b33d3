"""Recurrent layers in PyTorch: oneDNN's or cuDNN's fused LSTM, cuDNN's plain RNN, and on a CPU a loop for the latter.

workload                                  PyTorch
kernel (in, 4 units), gates i f g o  ──►  weight_ih (4 units, in), gates i f g o
bias                                 ──►  bias_ih; bias_hh, a second one of the same sum, stays zero and untrained
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from kit.workloads import recurrent as kinds

Place = tuple[nn.Parameter, tuple[int, ...]]  # a parameter, and the order that the workload's axes have in it
SUFFIXES = {"": "", "forward_": "", "backward_": "_reverse"}


class SimpleRNN(nn.RNN):  # type: ignore[misc]
    """nn.RNN, whose last state is all that is wanted.

    On a CPU nn.RNN is a loop in C++ that adds both biases in each step. With the bias in the projection of all steps,
    and the sum of both products in one addmm, training took 0.88 of its time and inference 0.72 (batch 128).
    """

    def __init__(self, inputs: int, layer: kinds.SimpleRNN) -> None:
        super().__init__(inputs, layer.units, nonlinearity="tanh", batch_first=True)
        _silence_second_bias(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, units) for (batch, steps, features)."""
        if x.is_cuda:
            return super().forward(x)[1][0]
        first, *others = nn.functional.linear(x.transpose(0, 1), self.weight_ih_l0, self.bias_ih_l0).unbind()
        state, recurrent = torch.tanh(first), self.weight_hh_l0.t()
        for projected in others:
            state = torch.tanh(torch.addmm(projected, state, recurrent))
        return state


class LSTM(nn.LSTM):  # type: ignore[misc]
    """nn.LSTM with one tensor as its result."""

    def __init__(self, inputs: int, layer: kinds.LSTM) -> None:
        super().__init__(inputs, layer.units, batch_first=True, bidirectional=layer.bidirectional)
        self._sequences = layer.sequences
        _silence_second_bias(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, steps, units) or (batch, units) for (batch, steps, features); both directions side by side."""
        if torch.is_autocast_enabled("cpu") and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            # oneDNN has no bfloat16 LSTM for this CPU. PyTorch asks it only where the input is bfloat16 already, and
            # then computes the layer by itself; a float32 input it hands over, and fails.
            x = x.to(torch.bfloat16)
        states, (last, _) = super().forward(x)
        return states if self._sequences else last.transpose(0, 1).flatten(1)


def places(module: nn.RNNBase, prefixes: tuple[str, ...] = ("",)) -> Iterator[tuple[str, Place]]:
    """Yield the workload's name of each weight, and where it goes."""
    for prefix in prefixes:
        suffix = SUFFIXES[prefix]
        yield f"{prefix}kernel", (getattr(module, f"weight_ih_l0{suffix}"), (1, 0))
        yield f"{prefix}recurrent_kernel", (getattr(module, f"weight_hh_l0{suffix}"), (1, 0))
        yield f"{prefix}bias", (getattr(module, f"bias_ih_l0{suffix}"), (0,))


def _silence_second_bias(module: nn.RNNBase) -> None:
    for name, parameter in module.named_parameters():
        if name.startswith("bias_hh"):
            nn.init.zeros_(parameter.requires_grad_(False))
