"""FLOPs and bytes of a step, against counts by hand."""

import pytest

from kit.workloads.step_cost import cache_b, cost_of, least_memory_b
from kit.workloads.workload import (
    LSTM,
    SGD,
    Adam,
    Bottleneck,
    Conv2D,
    ConvolutionStem,
    DecoderBlock,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    Layer,
    LayerNorm,
    MaxPool2D,
    Positions,
    SimpleRNN,
    TiedLogits,
    Weight,
    Workload,
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
        (ConvolutionStem(4), (9, 8, 3), 5 * 4 * 4 * 49 * 3, 5 * 4 * 4 * 49 * 3),
        (Bottleneck(2), (5, 5, 8), 25 * (8 * 2 + 9 * 4 + 2 * 8), 25 * (8 * 2 + 2 * 8)),
        (Bottleneck(2, 2), (5, 5, 3), 25 * 3 * 2 + 9 * (9 * 4 + 2 * 8 + 3 * 8), 25 * 3 * 2 + 9 * (2 * 8 + 3 * 8)),
        (Embedding(11, 4), (7,), 0, 0),
        (TiedLogits(11), (7, 4), 7 * 4 * 11, 7 * 4 * 11),
    ],
)
def test_products_of_each_layer(layer, shape, forward, with_input):
    products = layer.products(shape)
    assert (products.total, products.with_input) == (forward, with_input)


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


def test_published_operations_of_the_networks_of_accelerators():
    # He et al. count 3.8e9 multiply-adds of the first version; with the stride in the 3 x 3 they are 4.1e9.
    assert cost_of(workload("resnet50", {}), "infer", 1, "float32").flops == pytest.approx(2 * 4.09e9, rel=0.01)
    # 6 FLOPs a weight and token (Kaplan et al. 2020), and attention: 12 layers x 12 x tokens x width.
    tokens, weights = 1024, 124_439_808 - 1024 * 768
    by_hand = tokens * (6 * weights + 12 * 12 * tokens * 768)
    assert cost_of(workload("gpt2", {}), "train", 1, "float32").flops == pytest.approx(by_hand, rel=0.01)


def test_a_token_of_an_answer_costs_its_weights_once_and_the_cache():
    network, batch = workload("gpt2", {}), 8
    cost, whole = (cost_of(network, task, batch, "float32") for task in ("decode", "infer"))
    assert cost.flops == pytest.approx(2 * batch * (124e6 + 12 * 2 * 1024 * 768), rel=0.02)
    assert cost.bytes == pytest.approx(4 * 124e6 + cache_b(network, batch, "float32"), rel=0.02)
    assert cache_b(network, batch, "float32") == 8 * 12 * 2 * 1024 * 768 * 4 == 2 * cache_b(network, batch, "bfloat16")
    assert whole.flops > 500 * cost.flops


def test_memory_grows_with_the_batch_and_training_keeps_the_most():
    network = workload("gpt2", {})
    train, infer, decode = (least_memory_b(network, task, 8, "bfloat16") for task in ("train", "infer", "decode"))
    assert train > infer > decode > 4 * 124_439_808
    assert least_memory_b(network, "train", 16, "bfloat16") > 1.5 * train
    # Weights, gradients and two moments, before any sample.
    assert train > 4 * 4 * 124_439_808
