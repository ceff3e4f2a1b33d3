from __future__ import annotations

import pytest

from kit.workloads.catalog import WORKLOADS
from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, MaxPool2D
from kit.workloads.shapes import layer_shapes, output_shape, weighted_layers


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
    assert output_shape(layer, before) == after


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (Dense(10), (28, 28)),
        (Conv2D(1, (3, 3)), (784,)),
        (MaxPool2D(2), (784,)),
        (Conv2D(1, (3, 3)), (2, 5, 1)),  # a kernel larger than the image
        (MaxPool2D(4), (3, 8, 1)),  # not one whole window
    ],
)
def test_a_shape_that_a_layer_cannot_take_is_refused(layer, shape):
    with pytest.raises(ValueError, match=rf"{type(layer).__name__} cannot take samples of shape"):
        output_shape(layer, shape)


def test_every_workload_ends_in_one_logit_a_class():
    for workload in WORKLOADS.values():
        *_, (_, _, last) = layer_shapes(workload)
        assert last == (workload.classes,)


def test_layers_with_weights_are_named_by_their_place():
    names = [(weighted.name, weighted.inputs) for weighted in weighted_layers(WORKLOADS["cnn"])]
    assert names == [("conv2d_0", 1), ("conv2d_1", 32), ("dense_2", 9216), ("dense_3", 128)]


def test_leaving_dropout_out_changes_no_weight():
    for workload in WORKLOADS.values():
        bare = workload.without_dropout()
        assert not any(isinstance(layer, Dropout) for layer in bare.layers)
        assert len(bare.layers) < len(workload.layers)
        assert weighted_layers(bare) == weighted_layers(workload)
