"""The layer vocabulary: what a network may be made of, as data. Backends translate; they add nothing.

Arrays are channels-last; kernels are (in, out) for `Dense` and (height, width, in, out) for `Conv2D`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Activation = Literal["linear", "relu", "tanh", "sigmoid"]


class Dense(msgspec.Struct, frozen=True, tag="dense"):
    """y = activation(x @ kernel + bias)."""

    units: int
    activation: Activation = "linear"


class Conv2D(msgspec.Struct, frozen=True, tag="conv2d"):
    """Stride-1 cross-correlation with bias, over (height, width)."""

    filters: int
    kernel: tuple[int, int]
    activation: Activation = "linear"
    padding: Literal["valid", "same"] = "valid"


class MaxPool2D(msgspec.Struct, frozen=True, tag="max_pool2d"):
    """Non-overlapping maximum over `size` x `size` windows; a remainder at the edge is dropped."""

    size: int


class Dropout(msgspec.Struct, frozen=True, tag="dropout"):
    """Zero with probability `rate` and scale the rest by 1 / (1 - rate), in training only."""

    rate: float


class Flatten(msgspec.Struct, frozen=True, tag="flatten"):
    """To (batch, features), channels fastest."""


Layer = Dense | Conv2D | MaxPool2D | Dropout | Flatten
