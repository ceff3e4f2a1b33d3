"""Errors that a backend might have, each planted in one backend: parity has to see them.

Of each network: error -> the workload and the weights that a backend with that error would in truth be running, and
what of the framework is patched meanwhile.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from unittest import mock

import numpy as np
from msgspec.structs import replace

from kit.workloads.layers import GATES, Flatten
from kit.workloads.weights import initial_weights


def another(of, **hyperparameters):
    return replace(of, optimizer=replace(of.optimizer, **hyperparameters)), None, nullcontext()


def changed(of, change, *names):
    """The same network, where `change` was made to these weights."""
    weights = initial_weights(of, 0)
    for name in names:
        weights[name] = np.ascontiguousarray(change(weights[name]))
    return of, weights, nullcontext()


def in_mlp(of):
    return {
        "learning_rate": another(of, learning_rate=1.01 * of.optimizer.learning_rate),
        "kernel transposed": changed(of, np.transpose, "dense_1.kernel"),
    }


def in_cnn(of):
    flatten = next(placed for placed in of.placed_layers() if isinstance(placed.layer, Flatten))

    def channels_first(kernel):
        return kernel.reshape(*flatten.input_shape, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)

    return {
        "learning_rate": another(of, learning_rate=1.01 * of.optimizer.learning_rate),
        "flattened channels first": changed(of, channels_first, "dense_2.kernel"),
    }


def in_rnn(of):
    return {
        "learning_rate": another(of, learning_rate=1.01 * of.optimizer.learning_rate),
        "recurrent kernel transposed": changed(of, np.transpose, "simplernn_0.recurrent_kernel"),
    }


def in_lstm(of):
    def swap_candidate_and_output(array):
        i, f, g, o = np.split(array, GATES, axis=-1)
        return np.concatenate([i, f, o, g], axis=-1)

    all_three = ("lstm_0.kernel", "lstm_0.recurrent_kernel", "lstm_0.bias")
    return {
        "gates swapped": changed(of, swap_candidate_and_output, *all_three),
        "forget bias missing": changed(of, np.zeros_like, "lstm_0.bias"),
    }


def in_autoencoder(of):
    return {
        "a bias that is not zero": changed(of, lambda bias: bias + 0.01, "dense_5.bias"),
        "a kernel of half the variance": changed(of, lambda kernel: kernel / np.sqrt(2), "dense_2.kernel"),
    }


def in_dblstm(of):
    swapped = initial_weights(of, 0)
    for name, weight in initial_weights(of, 0).items():
        if "forward_" in name:
            other = name.replace("forward_", "backward_")
            swapped[name], swapped[other] = swapped[other], weight
    return {
        "directions swapped": (of, swapped, nullcontext()),
        "one forget bias missing": changed(of, np.zeros_like, "lstm_0.backward_bias"),
    }


def in_transformer(of):
    import torch.nn.functional as F  # noqa: N812

    attention = F.scaled_dot_product_attention

    def unmasked_attention(query, key, value, is_causal):
        return attention(query, key, value)

    gelu = partial(F.gelu, approximate="tanh")
    return {
        "mask missing": (of, None, mock.patch.object(F, "scaled_dot_product_attention", unmasked_attention)),
        "other GELU": (of, None, mock.patch.object(F, "gelu", gelu)),
        "positions missing": changed(of, np.zeros_like, "positions_1.table"),
    }


PLANTED = {
    "mlp": in_mlp,
    "cnn": in_cnn,
    "cnn_sgd": in_cnn,
    "cnn_small": in_cnn,
    "rnn": in_rnn,
    "lstm": in_lstm,
    "autoencoder": in_autoencoder,
    "dblstm": in_dblstm,
    "transformer": in_transformer,
}
