"""Networks small enough to check by hand, and batches for them. No framework in here."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from kit.backends.backend_catalog import CATALOG
from kit.profile.cell import Cell
from kit.workloads.seeded_arrays import HostBatch, initial_weights
from kit.workloads.workload import (
    LSTM,
    SGD,
    Adadelta,
    Adam,
    AveragePool,
    Bottleneck,
    Conv2D,
    ConvolutionStem,
    DecoderBlock,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    LastToken,
    Layer,
    LayerNorm,
    MaxPool2D,
    Positions,
    RMSprop,
    SimpleRNN,
    TiedLogits,
    Workload,
)

BATCH = 8
STEPS = 5

# Every rule with hyperparameters that no framework has as a default, and an epsilon large enough to matter: where it
# stands in the formula then shows.
RULES = {
    "sgd": SGD(learning_rate=0.05),
    "rmsprop": RMSprop(learning_rate=0.01, rho=0.8, epsilon=1e-3),
    "adadelta": Adadelta(learning_rate=0.5, rho=0.9, epsilon=1e-3),
    "adam": Adam(learning_rate=0.01, beta_1=0.8, beta_2=0.95, epsilon=1e-2),
}


class NewLayer(Layer, frozen=True):
    """A kind of layer that no backend translates."""


def workload(name, input_shape, layers, classes, optimizer):
    return Workload(
        name=name, data="mnist", input_shape=input_shape, classes=classes, layers=layers, optimizer=optimizer
    )


def small_mlp(rule):
    return workload("small_mlp", (12,), (Dense(16, "relu"), Dense(8, "relu"), Dense(5)), 5, RULES[rule])


# Every kind of layer, every activation, both paddings, sides that pooling does not divide, more than one input channel.
SMALL_CNN = workload(
    "small_cnn",
    (9, 7, 2),
    (
        Conv2D(4, (3, 2), "tanh", "same"),
        Conv2D(3, (2, 3), "relu"),
        MaxPool2D(2),
        Dropout(0.5),
        Flatten(),
        Dense(6, "sigmoid"),
        Dense(5),
    ),
    5,
    RULES["sgd"],
)

SMALL_RNN = workload("small_rnn", (6, 3), (SimpleRNN(5), Dense(4)), 4, RULES["sgd"])
SMALL_LSTM = workload(
    "small_lstm",
    (6, 3),
    (LSTM(4, sequences=True, bidirectional=True), LSTM(4, bidirectional=True), Dense(4)),
    4,
    RULES["sgd"],
)
SMALL_TRANSFORMER = workload(
    "small_transformer",
    (6, 3),
    (Dense(8), Positions(), DecoderBlock(2), LayerNorm(epsilon=1e-2), LastToken(), Dense(4)),
    4,
    RULES["sgd"],
)
SMALL_AUTOENCODER = replace(
    small_mlp("sgd"), name="small_autoencoder", layers=(Dense(4, "relu"), Dense(12)), loss="reconstruction"
)
# Odd sides, a block that keeps its shape, one that widens it, and one with a stride.
SMALL_RESNET = workload(
    "small_resnet",
    (25, 22, 3),
    (
        ConvolutionStem(8, epsilon=1e-2),
        Bottleneck(2),
        Bottleneck(3, epsilon=1e-2),
        Bottleneck(2, stride=2),
        AveragePool(),
        Dense(5),
    ),
    5,
    RULES["sgd"],
)
# An odd number of tokens.
SMALL_GPT = workload(
    "small_gpt",
    (7,),
    (Embedding(11, 8), Positions(), DecoderBlock(2, gelu="tanh"), DecoderBlock(4), LayerNorm(), TiedLogits(11)),
    11,
    RULES["sgd"],
)
NETWORKS = {
    network.name: network
    for network in (
        SMALL_CNN, SMALL_RNN, SMALL_LSTM, SMALL_TRANSFORMER, SMALL_AUTOENCODER, SMALL_RESNET, SMALL_GPT,
    )
}  # fmt: skip

# Sizes at which the networks of accelerators are checked here.
PARAMETERS = {
    "resnet50": {"side": 64, "filters": 16},
    "gpt2": {"width": 64, "depth": 2, "heads": 4, "length": 33, "vocabulary": 512},
}

# One feature into two classes through dropout alone: the mean loss is known in closed form (see test_dropout).
DROPOUT_RATE = 0.25
DROPOUT_KERNEL = 2.0
DROPOUT_BATCH = 20_000
DROPOUT_ONLY = workload("dropout_only", (1,), (Dropout(DROPOUT_RATE), Dense(2)), 2, SGD(learning_rate=0.0))
DROPOUT_WEIGHTS = {
    "dense_0.kernel": np.array([[DROPOUT_KERNEL, 0.0]], np.float32),
    "dense_0.bias": np.zeros(2, np.float32),
}

# Name -> precision and what a user has set, of a program that is built for a GPU.
GPU_SETTINGS = {
    "float32": ("float32", {}),
    "tf32": ("tf32", {}),
    "default": ("default", {}),
    "defaults": ("float32", {"KIT_FRAMEWORK_DEFAULTS": "1"}),
    "tf32 of defaults": ("tf32", {"KIT_FRAMEWORK_DEFAULTS": "1"}),
    "override": ("tf32", {"NVIDIA_TF32_OVERRIDE": "0"}),
}


def dropout_batch():
    return HostBatch(np.ones((DROPOUT_BATCH, 1), np.float32), np.zeros(DROPOUT_BATCH, np.int32))


def random_batches(network, count=STEPS, batch=BATCH, seed=0):
    generator = np.random.default_rng(seed)

    def drawn(*shape):
        return generator.integers(0, network.classes, (batch, *shape)).astype(np.int32)

    if network.takes_tokens:
        return [HostBatch(drawn(*network.input_shape), drawn(*network.input_shape)) for _ in range(count)]
    return [
        HostBatch(generator.standard_normal((batch, *network.input_shape)).astype(np.float32), drawn())
        for _ in range(count)
    ]


def moved_weights(network):
    """Initial weights, none of them at 0 or 1: a bias or a scale that is left out then shows."""
    generator = np.random.default_rng(1)
    return {
        name: array + generator.uniform(-0.2, 0.2, array.shape).astype(np.float32)
        for name, array in initial_weights(network, 0).items()
    }


def cell(
    backend, network, *, task="train", batch=BATCH, feed="device", compile_mode=None, precision="float32", device="cpu"
):
    return Cell(
        workload=network.name,
        backend=backend,
        device=device,
        task=task,
        batch=batch,
        precision=precision,
        compile_mode=compile_mode or CATALOG[backend].compile_modes[0],
        feed=feed,
    )
