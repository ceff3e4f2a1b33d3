"""A workload as Keras layers, channels last like the workload, and its optimizer."""

from __future__ import annotations

import keras

from kit.backends.tensorflow import attention
from kit.backends.tensorflow.about import ENTRY
from kit.profile.cell import Cell
from kit.workloads import optimizers as rules
from kit.workloads.attention import DecoderBlock, LastToken, LayerNorm, Positions
from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, MaxPool2D
from kit.workloads.recurrent import LSTM, SimpleRNN
from kit.workloads.weights import Weights
from kit.workloads.workload import PlacedLayer, Workload

# On a CPU an unrolled loop saved up to 4 % of a training step and 9 % of an inference step at 28 steps, and nothing at
# 128, where tracing took eight times as long.
UNROLLED_STEPS_MAX = 32


def build_model(workload: Workload, cell: Cell, weights: Weights, seed: int) -> keras.Sequential:
    """Return the network with `weights` in it; `seed` is for dropout."""
    layers = [_translate(placed, cell, seed + place) for place, placed in enumerate(workload.placed_layers())]
    model = keras.Sequential([keras.Input(workload.input_shape, dtype="float32"), *layers])
    for placed, layer in zip(workload.placed_layers(), model.layers, strict=True):
        for variable, name in zip(layer.trainable_variables, placed.weights, strict=True):  # in the same order
            variable.assign(weights[f"{placed.name}.{name}"])
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


def _translate(placed: PlacedLayer, cell: Cell, seed: int) -> keras.layers.Layer:  # noqa: PLR0911 - one a kind of layer
    match layer := placed.layer:
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
        case SimpleRNN():
            return keras.layers.SimpleRNN(layer.units, unroll=_unrolled(placed, cell))
        case LSTM():
            return _lstm(layer, placed, cell)
        case Positions():
            return attention.Positions()
        case LayerNorm():
            return attention.LayerNorm(epsilon=layer.epsilon)
        case DecoderBlock():
            return attention.DecoderBlock(layer)
        case LastToken():
            return attention.LastToken()
        case _:
            raise ENTRY.untranslated(layer)


def _lstm(layer: LSTM, placed: PlacedLayer, cell: Cell) -> keras.layers.Layer:
    # Keras takes cuDNN wherever a GPU is, also where the cell runs on the CPU beside it, or XLA compiles.
    cudnn = "auto" if cell.device == "gpu" and cell.compile_mode != "xla" else False
    lstm = keras.layers.LSTM(
        layer.units, return_sequences=layer.sequences, unroll=_unrolled(placed, cell), use_cudnn=cudnn
    )
    return keras.layers.Bidirectional(lstm) if layer.bidirectional else lstm


def _unrolled(placed: PlacedLayer, cell: Cell) -> bool:
    return cell.device == "cpu" and cell.compile_mode != "xla" and placed.input_shape[0] <= UNROLLED_STEPS_MAX
