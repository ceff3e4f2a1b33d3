"""What every program promises beside its numbers: feeds, compile modes, counts, threads, refusals."""

import numpy as np
import pytest
import small_workloads as small

from kit.backends.catalog import CATALOG
from kit.backends.hlo import kernel_ops

pytestmark = pytest.mark.frameworks

SAME_PROGRAM_TOLERANCE = 1e-6  # another order of sums is allowed, nothing else


@pytest.mark.parametrize("task", ["train", "infer"])
def test_host_feed_gives_what_device_feed_gives(exercised, task):
    device, host = exercised.arrays[f"feed/{task}/device"], exercised.arrays[f"feed/{task}/host"]
    assert device.shape == ((small.STEPS,) if task == "train" else (small.STEPS, small.BATCH, small.SMALL_CNN.classes))
    np.testing.assert_allclose(host, device, rtol=SAME_PROGRAM_TOLERANCE)


def test_the_mode_that_compiles_computes_the_same_and_compiles_once(exercised):
    if not exercised.facts["has_compiler"]:
        pytest.skip("compile needs a C++ compiler")
    arrays = exercised.arrays
    np.testing.assert_allclose(arrays["compile_mode"], arrays["rule/adam"], rtol=SAME_PROGRAM_TOLERANCE)
    # Five steps each, a prediction at another batch size, another program of the process: one compilation each.
    assert [compiled["count"] for compiled in exercised.facts["compile_mode"]] == [1, 1]
    breaks = {compiled["graph_breaks"] for compiled in exercised.facts["compile_mode"]}
    assert breaks == ({0} if exercised.name == "torch" else {None})


def test_tensorflow_without_a_graph_computes_the_same(exercise_of):
    exercised = exercise_of("tensorflow")
    np.testing.assert_allclose(exercised.arrays["eager"], exercised.arrays["rule/adam"], rtol=SAME_PROGRAM_TOLERANCE)
    kernels, compiled = exercised.facts["eager"]
    assert kernels == ["MatMul"]
    assert compiled["count"] is None and compiled["reason"]["code"] == "eager"


def test_compilations_of_the_default_mode(exercised):
    built, run = exercised.facts["compilations"]
    if exercised.name == "torch":
        assert run["count"] is None and run["reason"]["code"] == "eager"
    else:
        assert (built["count"], run["count"]) == (0, 1)


def test_jax_state_is_ready_when_the_loss_is(exercise_of):
    ready = exercise_of("jax").facts["state_ready"]
    assert ready and all(ready)


def test_threads_and_devices(exercised):
    assert exercised.facts["threads"] == [2, None]
    assert exercised.facts["devices"].keys() == {"cpu", "gpu", "tpu"}
    assert exercised.facts["devices"]["cpu"] == 1
    assert exercised.facts["version"][0].isdigit()


def test_a_tpu_is_taken_only_by_who_asks_for_it(exercise_of):
    counted, taken_before, (_, taken) = exercise_of("tensorflow").facts["without_tpu"]
    assert counted == [1, 0]
    assert (taken_before, taken) == (0, 1)


def test_a_layer_without_a_translation_is_refused_by_name(exercised):
    message = exercised.facts["refusal"]
    assert "NewLayer" in message and CATALOG[exercised.name].title in message


def test_kernels_are_named_as_the_framework_names_them(exercised):
    wanted = {
        "tensorflow": {"small_cnn": "Conv2D", "small_rnn": "MatMul", "long_transformer": "BatchMatMulV2"},
        "torch": {
            "small_cnn": "aten::mkldnn_convolution",
            "small_lstm": "aten::mkldnn_rnn_layer",
            "small_transformer": "aten::bmm",
            "long_transformer": "aten::_scaled_dot_product_flash_attention_for_cpu",
        },
        "jax": {"small_cnn": "convolution", "small_rnn": "while", "small_lstm": "while"},
    }[exercised.name]
    named = {name: exercised.facts[f"kernels/{name}"] for name in (*wanted, "small_transformer")}
    assert all(kernel in named[name] for name, kernel in wanted.items())
    assert all(names == sorted(set(names)) for names in named.values())
    assert not {"aten::mkldnn_rnn_layer", "while"} & set(named["small_transformer"])


def test_loops_products_and_library_calls_of_an_hlo_module():
    text = """
  %while.7 = (s32[], f32[8,5]{1,0}) while((s32[], f32[8,5]{1,0}) %tuple.3), condition=%c, body=%b
  %calls.1 = f32[8,20]{1,0} custom-call(%a, %b), custom_call_target="__onednn$matmul", api_version=API_VERSION
  %dot.2 = f32[8,4]{1,0} dot(%x, %y), lhs_contracting_dims={1}
  %dot.3 = f32[8,4]{1,0} dot(%y, %x), metadata={op_name="jit(f)/convolution_like"}
"""
    assert kernel_ops(text) == ["__onednn$matmul", "dot", "while"]
