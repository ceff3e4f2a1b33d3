"""Each backend's layers and the reconstruction loss against plain NumPy in float64."""

import math

import numpy as np
import pytest
import small_workloads as small

from kit.workloads.attention import DecoderBlock, LastToken, LayerNorm, Positions
from kit.workloads.layers import Conv2D, Dense, Flatten, MaxPool2D
from kit.workloads.recurrent import GATES, LSTM, SimpleRNN
from kit.workloads.weights import initial_weights

pytestmark = pytest.mark.frameworks

FLOAT32_TOLERANCE = 2e-6

erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {"linear": lambda x: x, "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "sigmoid": sigmoid}


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


def simple_rnn(x, kernel, recurrent_kernel, bias):
    state = np.zeros((len(x), len(bias)))
    for step in range(x.shape[1]):
        state = np.tanh(x[:, step] @ kernel + state @ recurrent_kernel + bias)
    return state


def one_lstm(x, kernel, recurrent_kernel, bias):
    """The states of all steps, (batch, steps, units)."""
    state = memory = np.zeros((len(x), len(bias) // GATES))
    states = []
    for step in range(x.shape[1]):
        i, f, g, o = np.split(x[:, step] @ kernel + state @ recurrent_kernel + bias, GATES, axis=1)
        memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(g)
        state = sigmoid(o) * np.tanh(memory)
        states.append(state)
    return np.stack(states, axis=1)


def lstm(layer, x, weights):
    forwards, *backwards = ([weights[p + n] for n in ("kernel", "recurrent_kernel", "bias")] for p in layer.prefixes)
    states = [one_lstm(x, *forwards), *(one_lstm(x[:, ::-1], *backward)[:, ::-1] for backward in backwards)]
    if layer.sequences:
        return np.concatenate(states, axis=2)
    return np.concatenate([states[0][:, -1], *(back[:, 0] for back in states[1:])], axis=1)


def norm(x, scale, offset, epsilon):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon) * scale + offset


def decoder_block(layer, x, weights):
    def dense(name, x):
        return x @ weights[f"{name}_kernel"] + weights[f"{name}_bias"]

    def normed(name, x):
        return norm(x, weights[f"{name}_scale"], weights[f"{name}_offset"], layer.epsilon)

    batch, tokens, width = x.shape
    qkv = dense("qkv", normed("norm_1", x)).reshape(batch, tokens, 3, layer.heads, width // layer.heads)
    q, k, v = (qkv[:, :, index].transpose(0, 2, 1, 3) for index in range(3))
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(width / layer.heads)
    scores[..., np.triu_indices(tokens, 1)[0], np.triu_indices(tokens, 1)[1]] = -np.inf
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    x = x + dense("projection", (shares @ v).transpose(0, 2, 1, 3).reshape(batch, tokens, width))
    up = dense("up", normed("norm_2", x))
    return x + dense("down", up * (1 + erf(up / math.sqrt(2))) / 2)


def forward(of, weights, x):
    x = x.astype(np.float64)
    for placed in of.placed_layers():
        arrays = {name: weights[f"{placed.name}.{name}"].astype(np.float64) for name in placed.weights}
        match layer := placed.layer:
            case Dense():
                x = ACTIVATIONS[layer.activation](x @ arrays["kernel"] + arrays["bias"])
            case Conv2D():
                x = ACTIVATIONS[layer.activation](convolve(x, **arrays, padding=layer.padding))
            case MaxPool2D():
                x = pool(x, layer.size)
            case Flatten():
                x = x.reshape(len(x), -1)
            case SimpleRNN():
                x = simple_rnn(x, **arrays)
            case LSTM():
                x = lstm(layer, x, arrays)
            case Positions():
                x = x + arrays["table"]
            case DecoderBlock():
                x = decoder_block(layer, x, arrays)
            case LayerNorm():
                x = norm(x, **arrays, epsilon=layer.epsilon)
            case LastToken():
                x = x[:, -1]
    return x


def test_logits_and_predictions_of_images(exercised):
    of = small.SMALL_CNN
    batches, weights = small.random_batches(of), initial_weights(of, 0)
    by_hand = np.array([forward(of, weights, batch.inputs) for batch in batches])
    logits = exercised.arrays["feed/infer/device"]
    assert logits.shape == by_hand.shape and logits.dtype == np.float32
    np.testing.assert_allclose(logits, by_hand, atol=FLOAT32_TOLERANCE)
    np.testing.assert_allclose(exercised.arrays["predicted"], by_hand, atol=FLOAT32_TOLERANCE)


@pytest.mark.parametrize("of", small.SEQUENCES, ids=lambda of: of.name)
def test_logits_of_sequences(exercised, of):
    by_hand = [forward(of, small.moved_weights(of), batch.inputs) for batch in small.random_batches(of)]
    np.testing.assert_allclose(exercised.arrays[f"sequences/{of.name}"], by_hand, atol=FLOAT32_TOLERANCE)


def test_a_reconstruction_is_measured_against_the_input(exercised):
    of, batch = small.SMALL_AUTOENCODER, small.random_batches(small.SMALL_AUTOENCODER)[0]
    outputs = forward(of, initial_weights(of, 0), batch.inputs)
    np.testing.assert_allclose(exercised.arrays["reconstruction/infer"], outputs, atol=FLOAT32_TOLERANCE)
    loss = np.square(outputs - batch.inputs).mean()
    np.testing.assert_allclose(exercised.arrays["reconstruction/train"], loss, rtol=FLOAT32_TOLERANCE)
