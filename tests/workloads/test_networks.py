from __future__ import annotations

import math

import msgspec
import pytest

from kit.workloads import networks
from kit.workloads.attention import DecoderBlock, LastToken, LayerNorm, Positions
from kit.workloads.catalog import DATASETS, WORKLOADS, ClashError, ParameterError, discover, workload
from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, MaxPool2D
from kit.workloads.recurrent import LSTM, SimpleRNN
from kit.workloads.workload import Workload

WITH_DROPOUT = ["mlp", "cnn", "cnn_small"]


@pytest.mark.parametrize(
    ("layer", "before", "after"),
    [
        (Dense(512), (784,), (512,)),
        (Conv2D(32, (3, 3)), (28, 28, 1), (26, 26, 32)),
        (Conv2D(64, (2, 5)), (10, 10, 3), (9, 6, 64)),
        (Conv2D(64, (2, 2), padding="same"), (28, 28, 1), (28, 28, 64)),
        (MaxPool2D(2), (24, 24, 64), (12, 12, 64)),
        (MaxPool2D(2), (25, 27, 3), (12, 13, 3)),
        (Dropout(0.2), (12, 12, 64), (12, 12, 64)),
        (Flatten(), (12, 12, 64), (9216,)),
        (Dense(64), (28, 16), (28, 64)),
        (SimpleRNN(5), (28, 16), (5,)),
        (LSTM(5), (28, 16), (5,)),
        (LSTM(5, sequences=True), (28, 16), (28, 5)),
        (LSTM(5, bidirectional=True), (28, 16), (10,)),
        (LSTM(5, sequences=True, bidirectional=True), (28, 16), (28, 10)),
        (Positions(), (28, 16), (28, 16)),
        (DecoderBlock(2), (28, 16), (28, 16)),
        (LayerNorm(), (28, 16), (28, 16)),
        (LastToken(), (28, 16), (16,)),
    ],
)
def test_what_a_layer_gives(layer, before, after):
    assert layer.output_shape(before) == after


def test_layers_with_weights_are_named_by_their_place():
    placed = {each.name: each.weights for each in WORKLOADS["cnn"].placed_layers() if each.weights}
    assert list(placed) == ["conv2d_0", "conv2d_1", "dense_2", "dense_3"]
    assert {name: weight.shape for name, weight in placed["conv2d_1"].items()} == {
        "kernel": (3, 3, 32, 64),
        "bias": (64,),
    }


def test_two_files_with_a_network_of_one_name_are_an_error(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("from kit.workloads.networks.rnn import RNN\n")
    monkeypatch.setattr(networks, "__path__", [*networks.__path__, str(tmp_path)])
    assert discover(networks, Workload)["rnn"] is WORKLOADS["rnn"]  # imported from there, the same
    (tmp_path / "mine_too.py").write_text(
        "import msgspec\nfrom kit.workloads.networks.rnn import RNN\nMINE = msgspec.structs.replace(RNN, name='mlp')\n"
    )
    with pytest.raises(ClashError, match=r"networks.mlp and .*networks.mine_too both have a Workload 'mlp'"):
        discover(networks, Workload)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_fits_its_data_and_ends_in_what_its_loss_takes(name):
    of = workload(name, {})
    assert of.name == WORKLOADS[name].name == name and of.data == WORKLOADS[name].data
    assert of.classes == DATASETS[of.data].classes
    assert math.prod(of.input_shape) == math.prod(DATASETS[of.data].sample_shape)
    *_, last = of.placed_layers()
    wanted = of.input_shape if of.loss == "reconstruction" else (of.classes,)
    assert last.layer.output_shape(last.input_shape) == wanted


@pytest.mark.parametrize(
    ("layers", "shapes"),
    [
        (1, [(64,), (6,)]),
        (2, [(128, 64), (64,), (6,)]),
        (3, [(128, 64), (128, 64), (64,), (6,)]),
    ],
)
def test_dblstm_is_as_deep_and_as_wide_as_asked(layers, shapes):
    placed = workload("dblstm", {"layers": layers, "units": 32}).placed_layers()
    assert [each.layer.output_shape(each.input_shape) for each in placed] == shapes


def test_transformer_is_what_its_parameters_say():
    of = workload("transformer", {"width": 8, "depth": 3, "heads": 2, "length": 49})
    assert of.input_shape == (49, 16)
    blocks = [layer for layer in of.layers if isinstance(layer, DecoderBlock)]
    assert blocks == [DecoderBlock(2)] * 3
    assert sum(math.prod(each.shape) for placed in of.placed_layers() for each in placed.weights.values()) == (
        16 * 8 + 8 + 49 * 8 + 3 * (12 * 8 * 8 + 13 * 8) + 2 * 8 + 8 * 10 + 10
    )


@pytest.mark.parametrize(("parameters", "said"), [({"heads": 5}, "width 64"), ({"length": 27}, "784 pixels")])
def test_a_transformer_that_is_none_is_refused(parameters, said):
    with pytest.raises(ParameterError, match=said):
        workload("transformer", parameters)


@pytest.mark.parametrize("name", WITH_DROPOUT)
def test_leaving_dropout_out_changes_no_weight(name):
    workload = WORKLOADS[name]
    bare = workload.without_dropout()
    assert not any(isinstance(layer, Dropout) for layer in bare.layers)
    assert len(bare.layers) < len(workload.layers)
    named = [[(each.name, each.weights) for each in of.placed_layers() if each.weights] for of in (workload, bare)]
    assert named[0] == named[1]


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("name", "keras_name"),
    [
        ("mlp", "RMSprop"),
        ("cnn", "Adadelta"),
        ("cnn_small", "Adam"),
        ("rnn", "SGD"),
        ("lstm", "Adam"),
        ("autoencoder", "Adam"),
        ("dblstm", "Adam"),
        ("transformer", "Adam"),
    ],
)
def test_optimizers_have_the_defaults_of_keras(name, keras_name):
    keras = pytest.importorskip("keras")
    defaults = getattr(keras.optimizers, keras_name)().get_config()
    ours = msgspec.structs.asdict(workload(name, {}).optimizer)
    assert ours == pytest.approx({field: defaults[field] for field in ours})
    # What the workload does not name must be off in Keras too.
    assert not defaults.get("momentum") and not defaults.get("centered") and defaults["weight_decay"] is None
