from __future__ import annotations

import math

import pytest

from kit.workloads.workload import DecoderBlock, Dropout
from kit.workloads.workload_catalog import DATASETS, WORKLOADS, WorkloadError, workload

WITH_DROPOUT = ["mlp", "cnn", "cnn_small"]


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_fits_its_data_and_ends_in_what_its_loss_takes(name):
    network = workload(name, {})
    assert network.name == WORKLOADS[name].name == name and network.data == WORKLOADS[name].data
    assert network.classes == DATASETS[network.data].classes
    assert math.prod(network.input_shape) == math.prod(DATASETS[network.data].sample_shape)
    *_, last = network.placed_layers()
    wanted = network.input_shape if network.loss == "reconstruction" else (*network.target_shape, network.classes)
    assert last.layer.output_shape(last.input_shape) == wanted


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_dblstm_is_as_deep_and_as_wide_as_asked(layers):
    placed = workload("dblstm", {"layers": layers, "units": 32}).placed_layers()
    shapes = [each.layer.output_shape(each.input_shape) for each in placed]
    assert shapes == [*[(128, 64)] * (layers - 1), (64,), (6,)]


def test_transformer_is_what_its_parameters_say():
    network = workload("transformer", {"width": 8, "depth": 3, "heads": 2, "length": 49})
    assert network.input_shape == (49, 16)
    blocks = [layer for layer in network.layers if isinstance(layer, DecoderBlock)]
    assert blocks == [DecoderBlock(2)] * 3
    assert sum(math.prod(each.shape) for placed in network.placed_layers() for each in placed.weights.values()) == (
        16 * 8 + 8 + 49 * 8 + 3 * (12 * 8 * 8 + 13 * 8) + 2 * 8 + 8 * 10 + 10
    )


def weights_of(network):
    return sum(math.prod(each.shape) for placed in network.placed_layers() for each in placed.weights.values())


def test_the_networks_of_accelerators_have_as_many_weights_as_published():
    # torchvision's resnet50; of GPT-2 the smallest, which is called 124 M.
    assert weights_of(workload("resnet50", {})) == 25_557_032
    assert weights_of(workload("gpt2", {})) == 124_439_808


@pytest.mark.parametrize(
    ("name", "parameters", "wrong"),
    [
        ("gpt2", {"length": 1}, "length is 1; give 2 to 1,024"),
        ("gpt2", {"length": 1025}, "length is 1,025"),
        ("gpt2", {"heads": 5}, "not a multiple of heads 5"),
        ("gpt2", {"vocabulary": 60_000}, "give at most 50,257"),
        ("resnet50", {"side": 225}, "give at most 224"),
    ],
)
def test_sizes_that_are_no_network_are_refused(name, parameters, wrong):
    with pytest.raises(WorkloadError, match=wrong):
        workload(name, parameters)


@pytest.mark.parametrize("name", WITH_DROPOUT)
def test_leaving_dropout_out_changes_no_weight(name):
    networks = [WORKLOADS[name], WORKLOADS[name].without_dropout()]
    assert not any(isinstance(layer, Dropout) for layer in networks[1].layers)
    assert len(networks[1].layers) < len(networks[0].layers)
    named = [[(each.name, each.weights) for each in network.placed_layers() if each.weights] for network in networks]
    assert named[0] == named[1]
