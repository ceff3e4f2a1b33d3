"""What every program promises beside its numbers: feeds, staging, compile modes, counts, refusals."""

import numpy as np
import pytest
import small_workloads as small

from kit.backends.catalog import CATALOG

pytestmark = pytest.mark.frameworks

SAME_PROGRAM_TOLERANCE = 1e-6  # another order of sums is allowed, nothing else


@pytest.mark.parametrize("task", ["train", "infer"])
def test_host_feed_gives_what_device_feed_gives(exercised, task):
    key = "feed/infer" if task == "infer" else "feed"
    device, host = exercised.arrays[f"{key}/device"], exercised.arrays[f"{key}/host"]
    assert device.shape[0] == small.STEPS
    np.testing.assert_allclose(host, device, rtol=SAME_PROGRAM_TOLERANCE)


def test_staging_changes_nothing(exercised):
    staged, unstaged = exercised.arrays["feed/device"], exercised.arrays["feed/unstaged"]
    np.testing.assert_allclose(unstaged, staged, rtol=SAME_PROGRAM_TOLERANCE)


def test_losses_are_scalars_and_logits_are_not(exercised):
    assert exercised.arrays["feed/device"].shape == (small.STEPS,)
    assert exercised.arrays["feed/infer/device"].shape == (small.STEPS, small.BATCH, small.SMALL_CNN.classes)


@pytest.mark.parametrize(("backend", "mode"), [("tensorflow", "xla"), ("torch", "compile")])
def test_other_compile_modes_compute_the_same(exercise_of, backend, mode):
    exercised = exercise_of(backend)
    if f"mode/{mode}" not in exercised.arrays:
        pytest.skip(f"{mode} needs a C++ compiler")
    np.testing.assert_allclose(
        exercised.arrays[f"mode/{mode}"], exercised.arrays["rule/adam/losses"], rtol=SAME_PROGRAM_TOLERANCE
    )
    # Five steps and an evaluation at another batch size: still the one compilation of the first step.
    assert exercised.facts[f"compilations_{mode}"]["count"] == 1


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_one_compilation_and_no_more(exercise_of, backend):
    facts = exercise_of(backend).facts
    assert facts["compilations_built"]["count"] == 0
    assert facts["compilations_run"]["count"] == 1


def test_eager_counts_nothing_and_says_why(exercise_of):
    compilations = exercise_of("torch").facts["compilations_run"]
    assert compilations["count"] is None
    assert "eager" in compilations["reason"]


def test_torch_compile_meets_no_graph_break(exercise_of):
    facts = exercise_of("torch").facts
    if "compilations_compile" not in facts:
        pytest.skip("compile needs a C++ compiler")
    assert facts["compilations_compile"]["graph_breaks"] == 0


def test_jax_state_is_ready_when_the_loss_is(exercise_of):
    ready = exercise_of("jax").facts["state_ready"]
    assert ready
    assert all(ready)


def test_threads_and_devices(exercised):
    reported, reason = exercised.facts["threads"]
    assert reported == 2
    assert reason is None
    assert exercised.facts["devices"].keys() == {"cpu", "gpu", "tpu"}
    assert exercised.facts["devices"]["cpu"] == 1


def test_version(exercised):
    assert exercised.facts["version"][0].isdigit()


@pytest.mark.parametrize(
    ("what", "said"), [("mode", "turbo"), ("precision", "float8"), ("devices", "2 devices"), ("device", "tpu")]
)
def test_refuses_in_one_line(exercised, what, said):
    message = exercised.facts[f"refusal_{what}"]
    assert message is not None
    assert said in message
    assert CATALOG[exercised.name].title in message
    assert "\n" not in message
