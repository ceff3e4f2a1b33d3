"""A workload as PyTorch modules, channels first, and its weights in both layouts.

workload (channels last)            PyTorch (channels first)
Conv2D kernel (h, w, in, out)  ◄──►  weight (out, in, h, w)
Dense kernel (in, out)         ◄──►  weight (out, in)
Dense after Flatten: rows in (h, w, c) order  ◄──►  columns in (c, h, w) order
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from kit.workloads.layers import Activation, Conv2D, Dense, Dropout, Flatten, Layer, MaxPool2D
from kit.workloads.shapes import Shape, layer_shapes
from kit.workloads.weights import Weights
from kit.workloads.workload import Workload

Array = NDArray[np.float32]

ACTIVATIONS: dict[Activation, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}


class WeightedModule:
    """A module with weights, the workload's name for it, and the image shape it was flattened from, if it was."""

    def __init__(self, name: str, module: nn.Linear | nn.Conv2d, flattened: Shape | None) -> None:
        self.name = name
        self.module = module
        self.flattened = flattened

    def load(self, weights: Weights) -> None:
        """Take this layer's weights from the workload's layout."""
        with torch.no_grad():
            self.module.weight.copy_(torch.from_numpy(self._to_torch(weights[f"{self.name}.kernel"])))
            self.module.bias.copy_(torch.from_numpy(weights[f"{self.name}.bias"]))

    def dump(self) -> Weights:
        """This layer's weights in the workload's layout, on the host."""
        kernel = self._from_torch(self.module.weight.detach().cpu().numpy())
        bias = self.module.bias.detach().cpu().numpy().copy()
        return {f"{self.name}.kernel": kernel, f"{self.name}.bias": bias}

    def _to_torch(self, kernel: Array) -> Array:
        if kernel.ndim == 4:  # noqa: PLR2004
            return np.ascontiguousarray(kernel.transpose(3, 2, 0, 1))
        if self.flattened is not None:
            units = kernel.shape[-1]
            kernel = kernel.reshape(*self.flattened, units).transpose(2, 0, 1, 3).reshape(-1, units)
        return np.ascontiguousarray(kernel.T)

    def _from_torch(self, weight: Array) -> Array:
        if weight.ndim == 4:  # noqa: PLR2004
            return np.ascontiguousarray(weight.transpose(2, 3, 1, 0))
        kernel = weight.T
        if self.flattened is not None:
            height, width, channels = self.flattened
            units = kernel.shape[-1]
            kernel = kernel.reshape(channels, height, width, units).transpose(1, 2, 0, 3).reshape(-1, units)
        return np.array(kernel, order="C")  # a copy even where the transpose is contiguous already


def build_modules(workload: Workload) -> tuple[nn.Sequential, list[WeightedModule]]:
    """The network, and its modules with weights in the order of the workload's weight names."""
    modules: list[nn.Module] = []
    weighted: list[WeightedModule] = []
    flattened: Shape | None = None  # shape before the last Flatten, until a Dense has taken its rows
    for layer, before, _ in layer_shapes(workload):
        module = _module(layer, before)
        modules.append(module)
        if isinstance(layer, Flatten) and len(before) == 3:  # noqa: PLR2004
            flattened = before
        if isinstance(layer, Dense | Conv2D) and isinstance(module, nn.Linear | nn.Conv2d):
            kind = "dense" if isinstance(layer, Dense) else "conv2d"
            weighted.append(WeightedModule(f"{kind}_{len(weighted)}", module, flattened))
            flattened = None
            if layer.activation != "linear":
                modules.append(ACTIVATIONS[layer.activation]())
    return nn.Sequential(*modules), weighted


def _module(layer: Layer, before: Shape) -> nn.Module:
    match layer:
        case Dense(units=units):
            return nn.Linear(before[-1], units)
        case Conv2D(filters=filters, kernel=kernel, padding=padding):
            return nn.Conv2d(before[-1], filters, kernel, padding=padding)
        case MaxPool2D(size=size):
            return nn.MaxPool2d(size)
        case Dropout(rate=rate):
            return nn.Dropout(rate)
        case Flatten():
            return nn.Flatten()
