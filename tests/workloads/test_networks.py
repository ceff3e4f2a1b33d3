from __future__ import annotations

import math

import msgspec
import pytest

from kit.workloads.catalog import DATASETS, WORKLOADS
from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, MaxPool2D


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


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_fits_its_data_and_ends_in_one_logit_a_class(name):
    workload = WORKLOADS[name]
    data = DATASETS[workload.data]
    assert workload.name == name and workload.classes == data.classes
    assert math.prod(workload.input_shape) == math.prod(data.sample_shape)
    *_, last = workload.placed_layers()
    assert last.layer.output_shape(last.input_shape) == (workload.classes,)


@pytest.mark.parametrize("name", WORKLOADS)
def test_leaving_dropout_out_changes_no_weight(name):
    workload = WORKLOADS[name]
    bare = workload.without_dropout()
    assert not any(isinstance(layer, Dropout) for layer in bare.layers)
    assert len(bare.layers) < len(workload.layers)
    named = [[(each.name, each.weights) for each in of.placed_layers() if each.weights] for of in (workload, bare)]
    assert named[0] == named[1]


@pytest.mark.frameworks
@pytest.mark.parametrize(("name", "keras_name"), [("mlp", "RMSprop"), ("cnn", "Adadelta"), ("cnn_small", "Adam")])
def test_optimizers_have_the_defaults_of_keras(name, keras_name):
    keras = pytest.importorskip("keras")
    defaults = getattr(keras.optimizers, keras_name)().get_config()
    ours = msgspec.structs.asdict(WORKLOADS[name].optimizer)
    assert ours == pytest.approx({field: defaults[field] for field in ours})
    # What the workload does not name must be off in Keras too.
    assert not defaults.get("momentum") and not defaults.get("centered") and defaults["weight_decay"] is None
