"""A workload as Keras layers, channels last like the workload, and its optimizer."""

from __future__ import annotations

import keras

from kit.backends.tensorflow.about import ENTRY
from kit.workloads import optimizers as rules
from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, Layer, MaxPool2D
from kit.workloads.weights import Weights
from kit.workloads.workload import Workload


def build_model(workload: Workload, weights: Weights, seed: int) -> keras.Sequential:
    """Return the network with `weights` in it; `seed` is for dropout."""
    layers = [_translate(layer, seed + place) for place, layer in enumerate(workload.layers)]
    model = keras.Sequential([keras.Input(workload.input_shape, dtype="float32"), *layers])
    for placed, layer in zip(workload.placed_layers(), model.layers, strict=True):
        for variable in layer.trainable_variables:  # Keras names them as the workload does
            variable.assign(weights[f"{placed.name}.{variable.name}"])
    return model


def build_optimizer(rule: rules.Optimizer) -> keras.optimizers.Optimizer:
    """Return the Keras optimizer of that name, every hyperparameter given."""
    match rule:
        case rules.SGD(rate):
            return keras.optimizers.SGD(rate, momentum=0.0)
        case rules.RMSprop(rate, rho, epsilon):
            return keras.optimizers.RMSprop(rate, rho=rho, momentum=0.0, epsilon=epsilon, centered=False)
        case rules.Adadelta(rate, rho, epsilon):
            return keras.optimizers.Adadelta(rate, rho=rho, epsilon=epsilon)
        case rules.Adam(rate, beta_1, beta_2, epsilon):
            return keras.optimizers.Adam(rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, amsgrad=False)


def _translate(layer: Layer, seed: int) -> keras.layers.Layer:
    match layer:
        case Dense():
            return keras.layers.Dense(layer.units, layer.activation)
        case Conv2D():
            return keras.layers.Conv2D(layer.filters, layer.kernel, activation=layer.activation, padding=layer.padding)
        case MaxPool2D():
            return keras.layers.MaxPooling2D(layer.size)
        case Dropout():
            return keras.layers.Dropout(layer.rate, seed=seed)
        case Flatten():
            return keras.layers.Flatten()
        case _:
            raise ENTRY.untranslated(layer)
