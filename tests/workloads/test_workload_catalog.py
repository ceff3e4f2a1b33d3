from __future__ import annotations

import math

import msgspec
import pytest

from kit.workloads.catalog import WORKLOADS
from kit.workloads.workload import Workload


def test_a_workload_is_found_by_its_own_name():
    assert {name: workload.name for name, workload in WORKLOADS.items()} == {"mlp": "mlp", "cnn": "cnn"}


def test_a_workload_is_data_that_survives_json():
    for workload in WORKLOADS.values():
        assert msgspec.json.decode(msgspec.json.encode(workload), type=Workload) == workload


def test_a_sample_is_one_mnist_image():
    assert {math.prod(workload.input_shape) for workload in WORKLOADS.values()} == {28 * 28}


@pytest.mark.frameworks
@pytest.mark.parametrize(("name", "keras_name"), [("mlp", "RMSprop"), ("cnn", "Adadelta")])
def test_optimizers_have_the_defaults_of_keras(name, keras_name):
    keras = pytest.importorskip("keras")
    defaults = getattr(keras.optimizers, keras_name)().get_config()
    ours = msgspec.structs.asdict(WORKLOADS[name].optimizer)
    assert ours == pytest.approx({field: defaults[field] for field in ours})
    # What the workload does not name must be off in Keras too.
    assert not defaults.get("momentum") and not defaults.get("centered") and defaults["weight_decay"] is None
