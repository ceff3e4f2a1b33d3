"""Recurrent layers: over samples of (steps, features), from a state of zeros.

The gates of an LSTM stand in the order input, forget, candidate, output in its kernels and its bias, as in Keras:

    i, f, g, o = split(x @ kernel + h @ recurrent_kernel + bias)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    h = sigmoid(o) * tanh(c)
"""

from __future__ import annotations

from kit.workloads.layers import Layer, Products, Shape, Weight

GATES = 4


class SimpleRNN(Layer, frozen=True):
    """The last state of h = tanh(x @ kernel + h @ recurrent_kernel + bias)."""

    units: int

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return kernel (features, units), recurrent_kernel (units, units) and bias (units,)."""
        return {
            "kernel": Weight((shape[-1], self.units), "glorot_uniform"),
            "recurrent_kernel": Weight((self.units, self.units), "orthogonal"),
            "bias": Weight((self.units,), "zeros"),
        }

    def output_shape(self, shape: Shape) -> Shape:  # noqa: ARG002
        """Return (units,) for (steps, features)."""
        return (self.units,)

    def products(self, shape: Shape) -> Products:
        """Count both kernels in each step."""
        steps, features = shape
        return Products(steps * features * self.units, steps * self.units**2)


class LSTM(Layer, frozen=True):
    """A long short-term memory: its last state, or the states of all steps.

    Bidirectional, it is two: one reads forwards, the other backwards, and what both give is concatenated, each step's
    with the same step's, or the last state that each came to.
    """

    units: int
    sequences: bool = False
    bidirectional: bool = False

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Return what the names of each direction's weights begin with."""
        return ("forward_", "backward_") if self.bidirectional else ("",)

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return of each direction kernel (features, 4 units), recurrent_kernel (units, 4 units), bias (4 units,)."""
        wide = GATES * self.units
        weights = {
            "kernel": Weight((shape[-1], wide), "glorot_uniform"),
            "recurrent_kernel": Weight((self.units, wide), "orthogonal"),
            "bias": Weight((wide,), "unit_forget"),
        }
        return {prefix + name: weight for prefix in self.prefixes for name, weight in weights.items()}

    def output_shape(self, shape: Shape) -> Shape:
        """Return (steps, units) or (units,) for (steps, features); twice the units where bidirectional."""
        wide = self.units * len(self.prefixes)
        return (shape[0], wide) if self.sequences else (wide,)

    def products(self, shape: Shape) -> Products:
        """Count both kernels of each direction in each step."""
        steps, features = shape
        gates = steps * GATES * self.units * len(self.prefixes)
        return Products(gates * features, gates * self.units)
