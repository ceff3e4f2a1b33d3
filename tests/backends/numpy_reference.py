"""Layers, losses and update rules by hand, in float64.

Written from the formulas, not from a backend, so that three backends that are wrong alike are still caught.
"""

from __future__ import annotations

import math

import numpy as np

from kit.workloads import workload as rules
from kit.workloads.workload import (
    GATES,
    LSTM,
    AveragePool,
    Bottleneck,
    Conv2D,
    ConvolutionStem,
    DecoderBlock,
    Dense,
    Embedding,
    Flatten,
    LastToken,
    LayerNorm,
    MaxPool2D,
    Positions,
    SimpleRNN,
    TiedLogits,
)

# Where each framework adds its epsilon: with the root of a mean, or within; before the bias correction, or after.
EPSILON_OUTSIDE_ROOT = {"tensorflow": False, "torch": True, "jax": False}
EPSILON_AFTER_CORRECTION = {"tensorflow": False, "torch": True, "jax": True}

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
    fractions = np.exp(scores - scores.max(axis=-1, keepdims=True))
    fractions /= fractions.sum(axis=-1, keepdims=True)
    x = x + dense("projection", (fractions @ v).transpose(0, 2, 1, 3).reshape(batch, tokens, width))
    up = dense("up", normed("norm_2", x))
    if layer.gelu == "tanh":
        return x + dense("down", up * (1 + np.tanh(math.sqrt(2 / math.pi) * (up + 0.044715 * up**3))) / 2)
    return x + dense("down", up * (1 + erf(up / math.sqrt(2))) / 2)


def normed_convolution(layer, x, weights, prefix="", *, stride=1, training=False):
    """A convolution that pads by half of its kernel, and batch norm; running means are 0, variances 1."""
    kernel, scale, offset = (weights[f"{prefix}{name}"] for name in ("kernel", "scale", "offset"))
    x = np.pad(x, [(0, 0), *[(len(kernel) // 2,) * 2] * 2, (0, 0)])
    x = convolve(x, kernel, 0, "valid")[:, ::stride, ::stride]
    mean, variance = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if training else (0, 1)
    return (x - mean) / np.sqrt(variance + layer.epsilon) * scale + offset


def stem(layer, x, weights, training):
    x = np.maximum(normed_convolution(layer, x, weights, stride=2, training=training), 0)
    x = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))[:, ::2, ::2].max((-2, -1))


def bottleneck(layer, x, weights, training):
    def part(name, x, stride=1):
        return normed_convolution(layer, x, weights, f"{name}_", stride=stride, training=training)

    narrow = np.maximum(part("narrow", x), 0)
    wide = part("wide", np.maximum(part("middle", narrow, layer.stride), 0))
    return np.maximum(wide + (part("shortcut", x, layer.stride) if "shortcut_kernel" in weights else x), 0)


def forward(network, weights, x, *, training=False):  # noqa: PLR0912 - one a kind of layer
    """The network's output, dropout off."""
    x = x if network.takes_tokens else x.astype(np.float64)
    for placed in network.placed_layers():
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
                x = x + arrays["table"][: x.shape[1]]
            case DecoderBlock():
                x = decoder_block(layer, x, arrays)
            case LayerNorm():
                x = norm(x, **arrays, epsilon=layer.epsilon)
            case LastToken():
                x = x[:, -1]
            case Embedding():
                table = arrays["table"]
                x = table[x]
            case TiedLogits():
                x = x @ table.T
            case ConvolutionStem():
                x = stem(layer, x, arrays, training)
            case Bottleneck():
                x = bottleneck(layer, x, arrays, training)
            case AveragePool():
                x = x.mean((1, 2))
    return x


def softmax_cross_entropy(logits, targets):
    """Mean loss, and its gradient with respect to the logits."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(targets))
    gradient = np.exp(log_probabilities)
    gradient[rows, targets] -= 1
    return -log_probabilities[rows, targets].mean(), gradient / len(targets)


def loss(network, weights, batch):
    outputs = forward(network, weights, batch.inputs, training=True)
    if network.loss == "reconstruction":
        return np.square(outputs - batch.inputs).mean()
    return softmax_cross_entropy(outputs.reshape(-1, outputs.shape[-1]), batch.targets.ravel())[0]


class ReferenceMlp:
    """A chain of Dense layers (relu or linear), trained by one of the four rules as a framework has it."""

    def __init__(self, workload, weights, framework):
        self.framework = framework
        self.layers = [(placed.name, placed.layer) for placed in workload.placed_layers()]
        assert all(isinstance(layer, Dense) for _, layer in self.layers)
        self.rule = workload.optimizer
        self.weights = {name: array.astype(np.float64) for name, array in weights.items()}
        self.first = {name: np.zeros_like(array) for name, array in self.weights.items()}
        self.second = {name: np.zeros_like(array) for name, array in self.weights.items()}
        self.steps = 0

    def step(self, inputs, targets):
        """One update; the loss before it."""
        activations = self._forward(inputs)
        loss, gradient = softmax_cross_entropy(activations[-1], targets)
        gradients = {}
        for place in reversed(range(len(self.layers))):
            name, layer = self.layers[place]
            if layer.activation == "relu":
                gradient = gradient * (activations[place + 1] > 0)
            gradients[f"{name}.kernel"] = activations[place].T @ gradient
            gradients[f"{name}.bias"] = gradient.sum(axis=0)
            gradient = gradient @ self.weights[f"{name}.kernel"].T
        self.steps += 1
        for name, each in gradients.items():
            self._update(name, each)
        return loss

    def _forward(self, inputs):
        activations = [inputs.astype(np.float64)]
        for name, layer in self.layers:
            z = activations[-1] @ self.weights[f"{name}.kernel"] + self.weights[f"{name}.bias"]
            activations.append(np.maximum(z, 0) if layer.activation == "relu" else z)
        return activations

    def _update(self, name, g):
        weight, first, second = self.weights[name], self.first[name], self.second[name]
        match self.rule:
            case rules.SGD(lr):
                weight -= lr * g
            case rules.RMSprop(lr, rho, epsilon):
                second[:] = rho * second + (1 - rho) * g**2
                outside = EPSILON_OUTSIDE_ROOT[self.framework]
                weight -= lr * g / (np.sqrt(second) + epsilon if outside else np.sqrt(second + epsilon))
            case rules.Adadelta(lr, rho, epsilon):
                second[:] = rho * second + (1 - rho) * g**2
                delta = g * np.sqrt(first + epsilon) / np.sqrt(second + epsilon)
                first[:] = rho * first + (1 - rho) * delta**2
                weight -= lr * delta
            case rules.Adam(lr, beta_1, beta_2, epsilon):
                first[:] = beta_1 * first + (1 - beta_1) * g
                second[:] = beta_2 * second + (1 - beta_2) * g**2
                correction = np.sqrt(1 - beta_2**self.steps)
                if EPSILON_AFTER_CORRECTION[self.framework]:
                    epsilon = epsilon * correction
                weight -= lr / (1 - beta_1**self.steps) * correction * first / (np.sqrt(second) + epsilon)
