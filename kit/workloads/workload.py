"""A workload: a network, its data, its loss and its optimizer, as framework-neutral data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from kit.workloads.layers import Dropout, Layer, Shape, Weight
from kit.workloads.optimizers import Optimizer


class PlacedLayer(NamedTuple):
    """A layer where it stands in a network."""

    name: str  # "dense_0", "conv2d_1", …: kind, and place among the layers with weights; empty without weights
    layer: Layer
    input_shape: Shape
    weights: dict[str, Weight]  # own names; in weight files each follows the layer's: "dense_0.kernel"


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a backend needs to know of a network.

    The loss is the mean over the batch of softmax cross-entropy with integer targets.
    """

    name: str  # as in cells
    data: str  # the name of the data set it is defined on
    input_shape: Shape  # of one sample, channels last
    classes: int  # the last layer gives that many logits (softmax is in the loss)
    layers: tuple[Layer, ...]
    optimizer: Optimizer

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
