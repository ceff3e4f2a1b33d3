"""Operations in PyTorch, in eager mode: each is one call that writes into existing memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kit.backends.protocol import DeviceBatch
from kit.backends.torch.about import ENTRY
from kit.backends.torch.backend import set_precision
from kit.backends.torch.program import DEVICES, TorchProgram
from kit.profile.cell import Cell
from kit.workloads.device_operations import TRIAD_SCALE, square
from kit.workloads.seeded_arrays import operation_values


class TorchOperation(TorchProgram):
    """An operation; its step returns a tensor on the device."""

    def __init__(self, cell: Cell) -> None:
        self._device = torch.device(DEVICES[cell.device])
        self._on_gpu = cell.device == "gpu"
        on_device: dict[str, Any] = {"device": self._device}
        self._call: Callable[[], torch.Tensor]
        match cell.workload:
            case "matmul":
                dtype = torch.bfloat16 if cell.precision == "bfloat16" else torch.float32
                a, b, c = (torch.rand(square(cell), dtype=dtype, **on_device) for _ in range(3))
                self._call = lambda: torch.mm(a, b, out=c)
            case "triad":
                a, b = (torch.from_numpy(operation_values(cell)).to(self._device, copy=True) for _ in range(2))
                self._call = lambda: a.add_(b, alpha=TRIAD_SCALE)
            case "copy_in" | "copy_out":
                host = torch.from_numpy(operation_values(cell)).clone()  # into memory that PyTorch aligns
                there = host.to(self._device, copy=True)
                if self._on_gpu:
                    host = host.pin_memory()  # as a DataLoader's batches are
                if cell.workload == "copy_in":
                    self._call = lambda: there.copy_(host, non_blocking=True)
                else:
                    self._call = lambda: (host.copy_(there, non_blocking=True), there)[1]
            case "empty":
                x = torch.zeros(1, **on_device)
                self._call = lambda: x.add_(x)
            case _:
                raise ENTRY.untranslated(cell)

    def step(self, _batch: DeviceBatch) -> torch.Tensor:
        """Run the operation once."""
        return self._call()

    def to_host(self, output: torch.Tensor) -> NDArray[np.float32]:
        """Copy the array as float32, because NumPy has no bfloat16."""
        return super().to_host(output.float())


def build(cell: Cell) -> TorchOperation:
    """Return the operation that a cell names."""
    set_precision(cell)
    return TorchOperation(cell)
