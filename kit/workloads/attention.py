"""The layers of a transformer: over samples of (tokens, width)."""

from __future__ import annotations

from kit.workloads.layers import Layer, Products, Shape, Weight

# An MLP is four times as wide as its block (Vaswani et al. 2017, "Attention is all you need", section 3.3).
MLP_FACTOR = 4


class Positions(Layer, frozen=True):
    """y = x + table: what is learned of each place."""

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return table (tokens, width)."""
        return {"table": Weight(shape, "small_uniform")}

    def products(self, shape: Shape) -> Products:  # noqa: ARG002
        """None: it adds."""
        return Products(0)


class LayerNorm(Layer, frozen=True):
    """y = (x - mean) / sqrt(variance + epsilon) * scale + offset, over the last axis, with the biased variance."""

    epsilon: float = 1e-5

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return scale (width,) and offset (width,)."""
        return {"scale": Weight(shape[-1:], "ones"), "offset": Weight(shape[-1:], "zeros")}

    def products(self, shape: Shape) -> Products:  # noqa: ARG002
        """None: only products of matrices are counted."""
        return Products(0)


class DecoderBlock(Layer, frozen=True):
    """A pre-norm decoder block with causal self-attention.

        x ─┬─ norm_1 ─ qkv ─ attention ─ projection ─ + ─┬─ norm_2 ─ up ─ GELU ─ down ─ + ─►
           └──────────────────────────────────────────┘   └─────────────────────────────┘

    Attention is softmax(q k^T / sqrt(width / heads)) v, where a token sees itself and those before it. GELU is exact:
    x Φ(x). `qkv` gives q, k and v side by side, each with its heads side by side.
    """

    heads: int
    epsilon: float = 1e-5  # of both norms

    def weights(self, shape: Shape) -> dict[str, Weight]:
        """Return scale and offset (width,) of both norms, kernel (in, out) and bias (out,) of the four Dense layers."""
        width = shape[-1]
        norm = {"scale": Weight((width,), "ones"), "offset": Weight((width,), "zeros")}

        def dense(inputs: int, outputs: int) -> dict[str, Weight]:
            return {"kernel": Weight((inputs, outputs), "glorot_uniform"), "bias": Weight((outputs,), "zeros")}

        parts = {
            "norm_1": norm,
            "qkv": dense(width, 3 * width),
            "projection": dense(width, width),
            "norm_2": norm,
            "up": dense(width, MLP_FACTOR * width),
            "down": dense(MLP_FACTOR * width, width),
        }
        return {f"{part}_{name}": weight for part, weights in parts.items() for name, weight in weights.items()}

    def products(self, shape: Shape) -> Products:
        """Count the four Dense layers, and of attention q k^T and its product with v, whole: masked entries, too."""
        tokens, width = shape
        dense = (3 + 1 + 2 * MLP_FACTOR) * tokens * width**2
        return Products(dense, 2 * tokens**2 * width)


class LastToken(Layer, frozen=True):
    """The last token alone."""

    def output_shape(self, shape: Shape) -> Shape:
        """Return (width,) for (tokens, width)."""
        return shape[1:]
