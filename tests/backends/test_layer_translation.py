"""Each backend's layers against a plain NumPy forward pass."""

import numpy as np
import pytest
import small_workloads as small

from kit.workloads.layers import Conv2D, Dense, Flatten, MaxPool2D
from kit.workloads.weights import initial_weights

pytestmark = pytest.mark.frameworks

FLOAT32_TOLERANCE = 2e-6

ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def convolve(x, kernel, bias, padding):
    """Stride-1 cross-correlation; "same" pads the odd cell after, as XLA, TensorFlow and PyTorch do."""
    sides = kernel.shape[:2]
    if padding == "same":
        around = [((side - 1) // 2, side - 1 - (side - 1) // 2) for side in sides]
        x = np.pad(x, [(0, 0), *around, (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(x, sides, axis=(1, 2))  # (n, h, w, in, kh, kw)
    return np.einsum("nhwcij,ijco->nhwo", windows, kernel) + bias


def pool(x, size):
    n, height, width, channels = x.shape
    x = x[:, : height // size * size, : width // size * size]
    return x.reshape(n, height // size, size, width // size, size, channels).max(axis=(2, 4))


def forward(of, weights, x):
    x, weighted = x.astype(np.float64), 0
    for layer in of.layers:
        if isinstance(layer, Dense | Conv2D):
            kind = "dense" if isinstance(layer, Dense) else "conv2d"
            kernel, bias = (weights[f"{kind}_{weighted}.{part}"].astype(np.float64) for part in ("kernel", "bias"))
            x = x @ kernel + bias if kind == "dense" else convolve(x, kernel, bias, layer.padding)
            x = ACTIVATIONS[layer.activation](x)
            weighted += 1
        elif isinstance(layer, MaxPool2D):
            x = pool(x, layer.size)
        elif isinstance(layer, Flatten):
            x = x.reshape(len(x), -1)
    return x


def test_logits_and_predictions(exercised):
    of = small.SMALL_CNN
    batches, weights = small.random_batches(of), initial_weights(of, 0)
    by_hand = np.array([forward(of, weights, batch.inputs) for batch in batches])
    ours = exercised.arrays["feed/infer/device"]
    assert ours.shape == by_hand.shape and ours.dtype == np.float32
    np.testing.assert_allclose(ours, by_hand, atol=FLOAT32_TOLERANCE)
    np.testing.assert_allclose(exercised.arrays["predicted"], by_hand, atol=FLOAT32_TOLERANCE)
