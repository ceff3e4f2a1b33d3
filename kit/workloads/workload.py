"""A workload: a network, its data, its loss and its optimizer, as framework-neutral data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from kit.workloads.layers import Dropout, Layer, Shape, Weight
from kit.workloads.optimizers import Optimizer

# "cross_entropy": mean over the batch of softmax cross-entropy with integer targets; the last layer gives logits.
# "reconstruction": mean over batch and elements of the squared difference between the output and the input.
Loss = Literal["cross_entropy", "reconstruction"]


class PlacedLayer(NamedTuple):
    """A layer of a network, with its name and input."""

    name: str  # "dense_0", "conv2d_1", …: kind, and index among the layers with weights; empty without weights
    layer: Layer
    input_shape: Shape
    weights: dict[str, Weight]  # own names; in weight files each follows the layer's: "dense_0.kernel"


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a backend needs to know of a network."""

    name: str  # as in cells
    data: str  # the name of the data set it is defined on
    input_shape: Shape  # of one sample, channels last
    classes: int  # of the targets; under cross-entropy the last layer gives that many logits
    layers: tuple[Layer, ...]
    optimizer: Optimizer
    loss: Loss = "cross_entropy"

    def placed_layers(self) -> Iterator[PlacedLayer]:
        """Yield each layer with its name, input shape and weights."""
        shape, named = self.input_shape, 0
        for layer in self.layers:
            weights = layer.weights(shape)
            yield PlacedLayer(f"{type(layer).__name__.lower()}_{named}" if weights else "", layer, shape, weights)
            named += bool(weights)
            shape = layer.output_shape(shape)

    def without_dropout(self) -> Workload:
        """Return the same network with its dropout layers left out: deterministic, for the parity proof."""
        kept = tuple(layer for layer in self.layers if not isinstance(layer, Dropout))
        return msgspec.structs.replace(self, layers=kept)


@dataclass(frozen=True, kw_only=True)
class Family:
    """Networks that differ in whole numbers only, such as their layers and units."""

    name: str  # as in cells
    data: str  # the name of the data set they are defined on
    defaults: Mapping[str, int]  # parameter -> value where a suite gives none; each is 1 or more
    build: Callable[..., Workload]  # takes every parameter by name; ValueError for a combination that is no network
