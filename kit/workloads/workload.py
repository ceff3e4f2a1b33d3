"""A workload: a network, its data, its loss and its optimizer, as framework-neutral data."""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.workloads.layers import Dropout, Layer
from kit.workloads.optimizers import Optimizer


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a backend needs to know of a network.

    Attributes:
        name: as in cells.
        title: as in tables.
        data: the data set it is defined on.
        input_shape: of one sample, channels last.
        classes: number of classes; the last layer gives that many logits (softmax is in the loss).
        layers: in order.
        loss: mean over the batch of softmax cross-entropy with integer targets.
        optimizer: with every hyperparameter.
    """

    name: str
    title: str
    data: Literal["mnist"]
    input_shape: tuple[int, ...]
    classes: int
    layers: tuple[Layer, ...]
    loss: Literal["softmax_cross_entropy"]
    optimizer: Optimizer

    def without_dropout(self) -> Workload:
        """The same network with its dropout layers left out: deterministic, for the parity proof."""
        return msgspec.structs.replace(
            self, layers=tuple(layer for layer in self.layers if not isinstance(layer, Dropout))
        )
