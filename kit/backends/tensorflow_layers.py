"""A workload as Keras layers, and its weights. Both are channels last, so no layout changes."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, Layer, MaxPool2D
from kit.workloads.shapes import weighted_layers
from kit.workloads.weights import Weights
from kit.workloads.workload import Workload

DATA_FORMAT = "channels_last"  # given to every layer: a user's keras.json may say otherwise


def build_model(workload: Workload, weights: Weights, seed: int) -> keras.Sequential:
    """The network with `weights` in it; `seed` is for dropout."""
    layers = [_layer(layer, seed + place) for place, layer in enumerate(workload.layers)]
    model = keras.Sequential([keras.Input(workload.input_shape, dtype="float32"), *layers])
    for name, layer in _weighted_layers(workload, model).items():
        layer.kernel.assign(weights[f"{name}.kernel"])
        layer.bias.assign(weights[f"{name}.bias"])
    return model


def dump_weights(workload: Workload, model: keras.Sequential) -> Weights:
    """The weights in `model`, copied to the host."""
    dumped: Weights = {}
    for name, layer in _weighted_layers(workload, model).items():
        dumped[f"{name}.kernel"] = np.array(layer.kernel)
        dumped[f"{name}.bias"] = np.array(layer.bias)
    return dumped


def _weighted_layers(workload: Workload, model: keras.Sequential) -> dict[str, Any]:
    layers = [layer for layer in model.layers if layer.trainable_weights]
    return {weighted.name: layer for weighted, layer in zip(weighted_layers(workload), layers, strict=True)}


def _layer(layer: Layer, seed: int) -> keras.layers.Layer:
    match layer:
        case Dense(units=units, activation=activation):
            return keras.layers.Dense(units, activation)
        case Conv2D(filters=filters, kernel=kernel, activation=activation, padding=padding):
            return keras.layers.Conv2D(filters, kernel, activation=activation, padding=padding, data_format=DATA_FORMAT)
        case MaxPool2D(size=size):
            return keras.layers.MaxPooling2D(size, data_format=DATA_FORMAT)
        case Dropout(rate=rate):
            return keras.layers.Dropout(rate, seed=seed)
        case Flatten():
            return keras.layers.Flatten(data_format=DATA_FORMAT)
