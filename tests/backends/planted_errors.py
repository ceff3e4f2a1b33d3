"""Errors that a backend might have, planted in PyTorch: parity has to see each of them.

PLANTED: network -> error -> a function of the network in its parity form. It returns the network and the weights that a
backend with the error would run, and what of the framework is patched meanwhile.
"""

from __future__ import annotations

from contextlib import nullcontext
from unittest import mock

import numpy as np
from msgspec.structs import replace

from kit.workloads.seeded_arrays import initial_weights
from kit.workloads.workload import GATES


def other_rate(network):
    rate = 1.01 * network.optimizer.learning_rate
    return replace(network, optimizer=replace(network.optimizer, learning_rate=rate)), None, nullcontext()


def changed(change, *names):
    """`change` is made to these weights."""

    def plant(network):
        weights = initial_weights(network, 0)
        weights |= {name: np.ascontiguousarray(change(weights[name])) for name in names}
        return network, weights, nullcontext()

    return plant


def patched(name, make):
    """A function of PyTorch is replaced by what `make` makes of it."""

    def plant(network):
        import torch.nn.functional as F  # noqa: N812

        return network, None, mock.patch.object(F, name, make(getattr(F, name)))

    return plant


def directions_swapped(network):
    weights = {
        name.replace("forward_", "_").replace("backward_", "forward_").replace("._", ".backward_"): weight
        for name, weight in initial_weights(network, 0).items()
    }
    return network, weights, nullcontext()


def channels_first(kernel):
    """The rows of a kernel after a Flatten of (12, 12, 64), as if images were flattened channels first."""
    return kernel.reshape(12, 12, 64, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)


def candidate_and_output_swapped(array):
    i, f, g, o = np.split(array, GATES, axis=-1)
    return np.concatenate([i, f, o, g], axis=-1)


PLANTED = {
    "mlp": {"learning rate": other_rate, "kernel transposed": changed(np.transpose, "dense_1.kernel")},
    "cnn": {"learning rate": other_rate, "flattened channels first": changed(channels_first, "dense_2.kernel")},
    "rnn": {
        "learning rate": other_rate,
        "recurrent kernel transposed": changed(np.transpose, "simplernn_0.recurrent_kernel"),
    },
    "lstm": {
        "gates swapped": changed(
            candidate_and_output_swapped, *(f"lstm_0.{name}" for name in ("kernel", "recurrent_kernel", "bias"))
        ),
        "forget bias missing": changed(np.zeros_like, "lstm_0.bias"),
    },
    "autoencoder": {
        "a bias that is not zero": changed(lambda bias: bias + 0.01, "dense_5.bias"),
        "a kernel of half the variance": changed(lambda kernel: kernel / np.sqrt(2), "dense_2.kernel"),
    },
    "dblstm": {
        "directions swapped": directions_swapped,
        "one forget bias missing": changed(np.zeros_like, "lstm_0.backward_bias"),
    },
    "transformer": {
        "mask missing": patched(
            "scaled_dot_product_attention",
            lambda attention: lambda query, key, value, attn_mask, is_causal: attention(query, key, value),
        ),
        "other GELU": patched("gelu", lambda gelu: lambda x, **_: gelu(x, approximate="tanh")),
        "positions missing": changed(np.zeros_like, "positions_1.table"),
    },
    "resnet50": {
        "a norm's scale missing": changed(np.zeros_like, "bottleneck_1.shortcut_scale"),
        "two kernels of a block exchanged": changed(lambda kernel: kernel[::-1], "bottleneck_8.middle_kernel"),
    },
    "gpt2": {
        "mask missing": patched(
            "scaled_dot_product_attention",
            lambda attention: lambda query, key, value, attn_mask, is_causal: attention(query, key, value),
        ),
        "positions missing": changed(np.zeros_like, "positions_1.table"),
    },
}
