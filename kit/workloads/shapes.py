"""How shapes flow through a network: what each layer takes and gives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, Layer, MaxPool2D
from kit.workloads.workload import Workload

Shape = tuple[int, ...]


class WeightedLayer(NamedTuple):
    """A layer that has weights, with its name in weight files and the features or channels it takes."""

    name: str
    layer: Dense | Conv2D
    inputs: int


def output_shape(layer: Layer, shape: Shape) -> Shape:
    """Shape of one sample after `layer`; raises ValueError where the layer cannot take `shape`."""
    after = _after(layer, shape)
    if after is None or min(after) < 1:
        raise ValueError(f"{type(layer).__name__} cannot take samples of shape {shape}")
    return after


def _after(layer: Layer, shape: Shape) -> Shape | None:
    match layer:
        case Dense(units=units) if len(shape) == 1:
            return (units,)
        case Conv2D(filters=filters, kernel=(kernel_h, kernel_w), padding=padding) if len(shape) == 3:  # noqa: PLR2004
            height, width, _ = shape
            if padding == "valid":
                height, width = height - kernel_h + 1, width - kernel_w + 1
            return (height, width, filters)
        case MaxPool2D(size=size) if len(shape) == 3:  # noqa: PLR2004
            return (shape[0] // size, shape[1] // size, shape[2])
        case Dropout():
            return shape
        case Flatten():
            return (math.prod(shape),)
    return None


def layer_shapes(workload: Workload) -> Iterator[tuple[Layer, Shape, Shape]]:
    """Each layer with the shape it takes and the shape it gives."""
    shape = workload.input_shape
    for layer in workload.layers:
        after = output_shape(layer, shape)
        yield layer, shape, after
        shape = after


def weighted_layers(workload: Workload) -> list[WeightedLayer]:
    """The layers with weights, named ``dense_0``, ``conv2d_1``, … by their place among layers with weights."""
    found: list[WeightedLayer] = []
    for layer, before, _ in layer_shapes(workload):
        if isinstance(layer, Dense | Conv2D):
            kind = "dense" if isinstance(layer, Dense) else "conv2d"
            found.append(WeightedLayer(f"{kind}_{len(found)}", layer, before[-1]))
    return found
