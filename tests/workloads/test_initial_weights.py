from __future__ import annotations

import math

import numpy as np
import pytest

from kit.workloads.seeded_arrays import initial_weights, weights_sha256
from kit.workloads.workload_catalog import WORKLOADS

# Glorot and Bengio 2010, eq. 16, by hand: sqrt(6 / (fan in + fan out)), a convolution's fans times its 9 taps.
LIMITS = {
    "mlp": {"dense_0": math.sqrt(6 / 1296), "dense_1": math.sqrt(6 / 1024), "dense_2": math.sqrt(6 / 522)},
    "cnn": {
        "conv2d_0": math.sqrt(6 / (9 + 288)),
        "conv2d_1": math.sqrt(6 / (288 + 576)),
        "dense_2": math.sqrt(6 / 9344),
        "dense_3": math.sqrt(6 / 138),
    },
}


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_kernels_are_glorot_uniform_and_biases_zero(name):
    weights = initial_weights(WORKLOADS[name], 7)
    assert {key.split(".")[0] for key in weights} == set(LIMITS[name])
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float32)}
    for layer, limit in LIMITS[name].items():
        kernel = weights[f"{layer}.kernel"]
        one_ulp = np.spacing(np.float32(limit))
        assert 0.9 * limit < np.abs(kernel).max() <= limit + one_ulp
        assert kernel.var() == pytest.approx(limit**2 / 3, rel=0.25 if kernel.size < 1000 else 0.05)
        assert not weights[f"{layer}.bias"].any()


@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_recurrent_kernels_are_orthogonal_and_gates_open_to_forget(name):
    weights = initial_weights(WORKLOADS[name], 7)
    kernel = weights[f"{'simplernn' if name == 'rnn' else name}_0.recurrent_kernel"].astype(np.float64)
    np.testing.assert_allclose(kernel @ kernel.T, np.eye(len(kernel)), atol=1e-5)
    assert abs(np.trace(kernel)) < 0.2 * len(kernel)  # signs are drawn, too
    if name == "lstm":
        np.testing.assert_array_equal(weights["lstm_0.bias"], [*[0] * 128, *[1] * 128, *[0] * 256])


@pytest.mark.parametrize(
    ("name", "sha256"),
    [
        ("lstm", "c481455dfe2a98e8ceb20ca5a78725798dd357f7a9ec8d75c05b082ad17b64c1"),
        ("cnn", "be067d5afc4b4779f55d577b3725e87b0cb0c674cd8cc93ba0328c5486a77ba7"),
    ],
)
def test_the_same_numbers_on_every_machine(name, sha256):
    """NumPy may change a distribution's stream between versions (NEP 19). Then old and new profiles start apart."""
    assert weights_sha256(initial_weights(WORKLOADS[name], 0)) == sha256


def test_the_hash_sees_names_shapes_and_bytes():
    weights = {"a.kernel": np.arange(6, dtype=np.float32).reshape(2, 3)}
    reference = weights_sha256(weights)
    assert weights_sha256({"b.kernel": weights["a.kernel"]}) != reference
    assert weights_sha256({"a.kernel": weights["a.kernel"].reshape(3, 2)}) != reference
    assert weights_sha256({"a.kernel": weights["a.kernel"] + np.float32(1e-6)}) != reference
    assert weights_sha256({"a.kernel": np.asfortranarray(weights["a.kernel"])}) == reference
