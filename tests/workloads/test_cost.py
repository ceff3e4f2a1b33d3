"""FLOPs and bytes of a step, against counts by hand."""

import pytest

from kit.workloads.workload import (
    LSTM,
    SGD,
    Adam,
    Conv2D,
    DecoderBlock,
    Dense,
    Dropout,
    Flatten,
    Layer,
    LayerNorm,
    MaxPool2D,
    Positions,
    SimpleRNN,
    Weight,
    Workload,
    cost_of,
)
from kit.workloads.workload_catalog import workload

PLAIN_SGD = SGD(learning_rate=0.1)


class Unsaid(Layer, frozen=True):
    """A layer of somebody's, with weights and without products."""

    def weights(self, shape):
        return {"kernel": Weight(shape, "zeros")}


def network(*layers, shape=(12,), optimizer=PLAIN_SGD):
    return Workload(name="x", data="mnist", input_shape=shape, classes=5, layers=layers, optimizer=optimizer)


@pytest.mark.parametrize(
    ("layer", "shape", "forward", "with_input"),
    [
        (Dense(5), (12,), 60, 60),
        (Dense(5), (3, 12), 180, 180),
        (Conv2D(4, (3, 3)), (8, 8, 2), 6 * 6 * 4 * 9 * 2, 6 * 6 * 4 * 9 * 2),
        (Conv2D(4, (3, 3), padding="same"), (8, 8, 2), 8 * 8 * 4 * 9 * 2, 8 * 8 * 4 * 9 * 2),
        (SimpleRNN(5), (7, 3), 7 * (3 + 5) * 5, 7 * 3 * 5),
        (LSTM(5), (7, 3), 7 * (3 + 5) * 20, 7 * 3 * 20),
        (LSTM(5, sequences=True, bidirectional=True), (7, 3), 2 * 7 * (3 + 5) * 20, 2 * 7 * 3 * 20),
        (DecoderBlock(2), (7, 4), 7 * 12 * 16 + 2 * 49 * 4, 7 * 12 * 16),
        *((layer, (4, 4), 0, 0) for layer in (LayerNorm(), Positions(), Dropout(0.5), Flatten())),
        (MaxPool2D(2), (4, 4, 1), 0, 0),
    ],
)
def test_products_of_each_layer(layer, shape, forward, with_input):
    products = layer.products(shape)
    assert (sum(products), products.with_input) == (forward, with_input)


def test_training_is_thrice_the_forward_pass_less_what_the_first_layer_need_not_do():
    first, second = 12 * 7, 7 * 5
    net = network(Flatten(), Dense(7), Dropout(0.5), Dense(5))
    assert cost_of(net, "infer", 10, "float32").flops == 2 * 10 * (first + second)
    assert cost_of(net, "train", 10, "float32").flops == 2 * 10 * (2 * first + 3 * second)
    assert cost_of(net, "fit", 10, "float32") == cost_of(net, "train", 10, "float32")
    # The state of a recurrent layer has a gradient in the first layer, too.
    recurrent = network(SimpleRNN(5), shape=(7, 3))
    assert cost_of(recurrent, "train", 1, "float32").flops == 2 * (2 * 7 * 3 * 5 + 3 * 7 * 5 * 5)


def test_bytes_are_of_every_array_that_a_step_must_touch():
    weights, outputs = 12 * 7 + 7, 7
    net = network(Dense(7))
    assert cost_of(net, "infer", 10, "float32").bytes == 4 * (weights + 10 * (12 + 2 * outputs))
    # Weights and gradients, read and written; SGD keeps nothing, Adam two moments.
    assert cost_of(net, "train", 10, "float32").bytes == 4 * (4 * weights + 10 * (12 + 4 * outputs))
    adam = network(Dense(7), optimizer=Adam(learning_rate=0.1, beta_1=0.9, beta_2=0.9, epsilon=1e-7))
    assert cost_of(adam, "train", 10, "float32").bytes == 4 * (8 * weights + 10 * (12 + 4 * outputs))
    assert cost_of(net, "infer", 10, "bfloat16").bytes == 4 * (weights + 10 * 12) + 2 * 10 * 2 * outputs


def test_the_fewest_operations_are_a_quarter_of_convolutions_and_all_of_others():
    conv, dense = 26 * 26 * 32 * 9 + 24 * 24 * 64 * 9 * 32, 9216 * 128 + 1280
    cost = cost_of(workload("cnn", {}), "infer", 1, "float32")
    assert (cost.flops, cost.least_flops) == (2 * (conv + dense), 2 * (conv / 4 + dense))


def test_a_layer_that_does_not_say_its_products_leaves_the_cost_open():
    assert cost_of(network(Unsaid(), Dense(5)), "infer", 1, "float32") is None
