"""What every program promises beside its numbers: compile modes, counts, threads, refusals, and its form on a GPU."""

import numpy as np
import pytest
import small_workloads as small

from kit.backends.backend_catalog import CATALOG
from kit.backends.protocol import kernel_ops
from kit.workloads.step_cost import cost_of
from kit.workloads.workload_catalog import WORKLOADS, workload

pytestmark = pytest.mark.frameworks

SAME_PROGRAM_TOLERANCE = 1e-6  # another order of sums is allowed, nothing else


def compiles_once(exercised, mode, *, with_compiler):
    answer = exercised.answer("compiled", with_compiler, mode)
    if answer is None:
        pytest.skip("compile needs a C++ compiler")
    losses, *programs = answer
    np.testing.assert_allclose(losses, exercised.answer("rule", "adam")[0], rtol=SAME_PROGRAM_TOLERANCE)
    # Five steps each, a prediction at another batch size, another program of the process: one compilation each.
    assert [compiled.count for compiled in programs] == [1, 1]
    assert {compiled.graph_breaks for compiled in programs} == ({0} if exercised.name == "torch" else {None})


@pytest.mark.parametrize(("name", "mode"), [("tensorflow", "xla"), ("torch", "compile")])
def test_a_mode_that_compiles_computes_the_same_and_compiles_once(exercise_of, name, mode):
    compiles_once(exercise_of(name), mode, with_compiler=False)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compile", "reduce-overhead", "max-autotune"])
def test_pytorchs_compiler_does_as_well(exercise_of, mode):
    compiles_once(exercise_of("torch"), mode, with_compiler=True)


def test_tensorflow_without_a_graph_computes_the_same(exercise_of):
    losses, kernels, compiled = exercise_of("tensorflow").answer("eager")
    np.testing.assert_allclose(losses, exercise_of("tensorflow").answer("rule", "adam")[0], rtol=SAME_PROGRAM_TOLERANCE)
    assert kernels == ["MatMul"]
    assert compiled.count is None and compiled.reason.code == "eager"


def test_compilations_of_the_default_mode(exercised):
    _, built, run = exercised.answer("rule", "sgd")
    if exercised.name == "torch":
        assert run.count is None and run.reason.code == "eager"
    else:
        assert (built.count, run.count) == (0, 1)


def test_threads_and_devices(exercised):
    version, threads, devices = exercised.answer("facts")
    assert version[0].isdigit() and threads == (2, None)
    assert devices.keys() == {"cpu", "gpu", "tpu"} and devices["cpu"] == 1


def test_a_tpu_is_taken_only_by_who_asks_for_it(exercise_of):
    assert exercise_of("tensorflow").answer("without_tpu") == ([1, 0], 0, 1)


def test_a_layer_without_a_translation_is_refused_by_name(exercised):
    message = exercised.answer("refusal")
    assert "NewLayer" in message and CATALOG[exercised.name].title in message


KERNELS = {
    "tensorflow": {"small_cnn": "Conv2D", "small_rnn": "MatMul", "small_transformer": "BatchMatMulV2"},
    "torch": {"small_cnn": "aten::mkldnn_convolution", "small_lstm": "aten::mkldnn_rnn_layer"},
    "jax": {"small_cnn": "convolution", "small_rnn": "while", "small_lstm": "while"},
}


def test_kernels_are_named_as_the_framework_names_them(exercised):
    named = {
        name: exercised.answer("outputs", name, "float32", "device")[1]
        for name in (*KERNELS[exercised.name], "small_transformer")
    }
    assert all(kernel in named[name] for name, kernel in KERNELS[exercised.name].items())
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


# XLA counts a loop's body once; PyTorch's counter knows no fused LSTM.
LOOPS = {"rnn": 28, "lstm": 28, "dblstm": 128}


@pytest.mark.parametrize("name", WORKLOADS)
def test_flops_are_those_of_the_frameworks_own_counters(exercise_of, name):
    network = workload(name, small.PARAMETERS.get(name, {}))
    if name not in LOOPS:
        for task in ("infer", "train"):
            counted = exercise_of("torch").answer("flops", name, task)
            assert counted == cost_of(network, task, small.BATCH, "float32").flops
    # XLA counts elementwise work, too, and no product with padding, which is much of a small image.
    counted = exercise_of("jax").answer("flops", name, "infer") * LOOPS.get(name, 1)
    wanted = cost_of(network, "infer", small.BATCH, "float32").flops
    tolerance = {"transformer": 0.2, "resnet50": 0.1, "gpt2": 0.1}
    assert counted == pytest.approx(wanted, rel=tolerance.get(name, 0.06))


# PyTorch keeps all states of a recurrent layer in one array of its own.
@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in LOOPS])
def test_what_a_layer_keeps_is_what_pytorch_keeps_of_it_at_least(exercise_of, name):
    saved_b = exercise_of("torch").answer("saved_b", name)
    network = workload(name, small.PARAMETERS.get(name, {})).without_dropout()
    kept = sum(placed.layer.kept(placed.input_shape) for placed in network.placed_layers())
    assert 0.2 < 4 * small.BATCH * kept / saved_b <= 1


def test_no_int32_leaves_tensorflows_feed_for_a_device_and_it_waits_for_that_device_alone(exercise_of):
    types, (operation,) = exercise_of("tensorflow").answer("fed")
    assert types == ["float32", "int64"]
    assert "SyncDevice" in operation


def test_pytorchs_host_feed_is_pinned_once_and_copied_without_a_wait(exercise_of):
    # Targets are of the type that the loss takes: a copy that converts is none from pinned memory.
    assert exercise_of("torch").answer("pinned") == (["float32", "int64"], [True] * 4)


@pytest.mark.parametrize(
    ("case", "asked"),
    [(("gpu",), ("NCCL", 0)), (("gpu", "26214400"), ("NCCL", 25 << 20)), (("cpu",), ("AUTO", 0))],
)
def test_tensorflow_averages_by_nccl_on_gpus_and_the_profile_says_so(exercise_of, case, asked):
    recorded = tuple(map(str, asked))
    assert exercise_of("tensorflow").answer("collectives", *case) == (asked, recorded)


@pytest.mark.parametrize("channels", [1, 3])
def test_pytorchs_images_lie_channels_first_on_a_device_whatever_the_number_of_channels(exercise_of, channels):
    assert exercise_of("torch").answer("strides", channels) == ((9 * 7 * channels, 9 * 7, 7, 1),) * 2


SWITCHES = {
    "tensorflow": ("tensor_float_32", {"float32": "False", "tf32": "True", "default": "True"}),
    "torch": ("cudnn.allow_tf32", {"float32": "False", "tf32": "True", "default": "True"}),
    "jax": ("jax_default_matmul_precision", {"float32": "highest", "tf32": "tensorfloat32", "default": "None"}),
}


def test_settings_of_a_gpu(exercised):
    name, values = SWITCHES[exercised.name]
    settings = {case: exercised.answer("settings", case) for case in small.GPU_SETTINGS}
    assert {precision: settings[precision][name] for precision in values} == values
    assert settings["defaults"][name] == values["float32"], "the key says float32"
    assert settings["tf32 of defaults"][name] == values["tf32"], "a precision that is named is no default"
    assert settings["defaults"]["KIT_FRAMEWORK_DEFAULTS"] == "1"
    assert "KIT_FRAMEWORK_DEFAULTS" not in settings["float32"]
    assert settings["override"][name].startswith(values["tf32"]), "an override of tf32 is beside what it beats"
    assert "NVIDIA_TF32_OVERRIDE=0" in settings["override"][name]
    assert "cpu" in settings["float32"]["targets"].lower(), "where targets are; a CPU stands in the GPU's place"
    if exercised.name == "torch":
        assert [settings[case]["cudnn.benchmark"] for case in ("float32", "defaults")] == ["True", "False"]


# What a user has set before a worker may take 0.3 of a GPU's memory -> what each framework then takes.
FRACTIONS = (
    ({}, {"jax": 0.3, "torch": 0.3, "tensorflow": 0.3}),
    (
        {"XLA_CLIENT_MEM_FRACTION": "0.5", "PYTORCH_CUDA_ALLOC_CONF": "per_process_memory_fraction:0.5"},
        {"jax": 0.5, "torch": None, "tensorflow": 0.3},
    ),
    (
        {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.4", "PYTORCH_ALLOC_CONF": "per_process_memory_fraction:0.4"},
        {"jax": 0.4, "torch": None, "tensorflow": 0.3},
    ),
    ({"KIT_FRAMEWORK_DEFAULTS": "1"}, {"jax": None, "torch": None, "tensorflow": None}),
)


@pytest.mark.parametrize(("environment", "taken"), FRACTIONS)
def test_a_fraction_of_memory_is_taken_unless_the_user_has_chosen(exercised, environment, taken):
    assert exercised.answer("memory_fraction", tuple(environment.items())) == taken[exercised.name]
