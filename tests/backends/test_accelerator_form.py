"""What is built for a GPU, run on a CPU in its place: optimizers, feeds, waits, precisions, memory."""

import pytest
import small_workloads as small

pytestmark = pytest.mark.frameworks


@pytest.mark.parametrize("rule", small.RULES)
def test_an_update_takes_as_many_operations_whatever_the_number_of_tensors(exercise_of, rule):
    shallow, deep = exercise_of("torch").facts[f"operations/{rule}"]
    assert shallow == deep <= 16


def test_no_int32_leaves_tensorflows_feed_for_a_device(exercise_of):
    assert exercise_of("tensorflow").facts["fed"] == ["float32", "int64"]


def test_tensorflow_waits_for_the_device_that_it_computes_on_alone(exercise_of):
    (operation,) = exercise_of("tensorflow").facts["waits"]
    assert "SyncDevice" in operation


def test_pytorchs_host_feed_is_pinned_once_and_copied_without_a_wait(exercise_of):
    pinned, asynchronous = exercise_of("torch").facts["pinned"]
    # Targets are of the type that the loss takes: a copy that converts is none from pinned memory.
    assert pinned == ["torch.float32", "torch.int64"]
    assert asynchronous == [True] * 4, "inputs and targets of two steps"


@pytest.mark.parametrize(
    ("case", "asked", "recorded"),
    [
        ("gpu", ["NCCL", 0], ["NCCL", "0"]),
        ("packs", ["NCCL", 25 << 20], ["NCCL", "26214400"]),
        ("cpu", ["AUTO", 0], ["AUTO", "0"]),
    ],
)
def test_tensorflow_averages_by_nccl_on_gpus_and_the_profile_says_so(exercise_of, case, asked, recorded):
    assert exercise_of("tensorflow").facts[f"collectives/{case}"] == [asked, recorded]


@pytest.mark.parametrize("channels", [1, 3])
def test_pytorchs_images_lie_channels_first_on_a_device_whatever_the_number_of_channels(exercise_of, channels):
    by_feed = exercise_of("torch").facts[f"strides of images/{channels}"]
    assert by_feed == [[9 * 7 * channels, 9 * 7, 7, 1]] * 2


SWITCHES = {
    "tensorflow": ("tensor_float_32", {"float32": "False", "tf32": "True", "default": "True"}),
    "torch": ("cudnn.allow_tf32", {"float32": "False", "tf32": "True", "default": "True"}),
    "jax": ("jax_default_matmul_precision", {"float32": "highest", "tf32": "tensorfloat32", "default": "None"}),
}


def test_float32_is_ours_unless_the_frameworks_is_asked_for(exercised):
    name, values = SWITCHES[exercised.name]
    settings = {of: exercised.facts[f"settings/{of}"] for of, *_ in small.GPU_SETTINGS}
    assert {precision: settings[precision][name] for precision in values} == values
    assert settings["defaults"][name] == values["float32"], "the key says float32"
    assert settings["tf32 of defaults"][name] == values["tf32"], "what is asked for by name is none of the defaults"
    assert settings["defaults"]["KIT_FRAMEWORK_DEFAULTS"] == "1"
    assert "KIT_FRAMEWORK_DEFAULTS" not in settings["float32"]


def test_each_says_where_the_targets_of_a_resident_batch_lie(exercised):
    assert "cpu" in exercised.facts["targets"].lower(), "which stands in the GPU's place here"


def test_cudnn_searches_unless_defaults_are_kept(exercise_of):
    facts = exercise_of("torch").facts
    assert [facts[f"settings/{of}"]["cudnn.benchmark"] for of in ("float32", "defaults")] == ["True", "False"]


def test_an_override_of_tf32_stands_beside_what_it_beats(exercised):
    name, values = SWITCHES[exercised.name]
    switch = exercised.facts["settings/override"][name]
    assert switch.startswith(values["tf32"]) and "NVIDIA_TF32_OVERRIDE=0" in switch


def test_a_share_of_memory_is_taken_unless_the_user_has_chosen(exercised):
    assert (
        exercised.facts["memory"]
        == {
            "jax": [0.3, 0.5, 0.4, None],
            "torch": [0.3, None, None, None],
            "tensorflow": [0.3, 0.3, 0.3, None],
        }[exercised.name]
    )
