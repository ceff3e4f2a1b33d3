"""Optimizers with every hyperparameter named, so that no framework's default can slip in.

The formulas are Keras' (https://keras.io/api/optimizers/); g is the gradient, w the weight. Each backend runs its
framework's own optimizer: PyTorch adds the epsilon of RMSprop to the root, PyTorch and optax add that of Adam after the
bias correction.
"""

from __future__ import annotations

import msgspec


class SGD(msgspec.Struct, frozen=True):
    """w -= learning_rate * g."""

    learning_rate: float


class RMSprop(msgspec.Struct, frozen=True):
    """v = rho * v + (1 - rho) * g^2;  w -= learning_rate * g / sqrt(v + epsilon). Epsilon is inside the root."""

    learning_rate: float
    rho: float
    epsilon: float


class Adadelta(msgspec.Struct, frozen=True):
    """a = rho a + (1 - rho) g^2; d = g sqrt(u + epsilon) / sqrt(a + epsilon); u = rho u + (1 - rho) d^2; w -= lr d."""

    learning_rate: float
    rho: float
    epsilon: float


class Adam(msgspec.Struct, frozen=True):
    """m, v moments; w -= lr * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon)."""

    learning_rate: float
    beta_1: float
    beta_2: float
    epsilon: float


Optimizer = SGD | RMSprop | Adadelta | Adam
