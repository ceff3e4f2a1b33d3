"""What every program promises beside its numbers: feeds, compile modes, counts, threads, refusals."""

import numpy as np
import pytest
import small_workloads as small

from kit.backends.catalog import CATALOG

pytestmark = pytest.mark.frameworks

SAME_PROGRAM_TOLERANCE = 1e-6  # another order of sums is allowed, nothing else


@pytest.mark.parametrize("task", ["train", "infer"])
def test_host_feed_gives_what_device_feed_gives(exercised, task):
    device, host = exercised.arrays[f"feed/{task}/device"], exercised.arrays[f"feed/{task}/host"]
    assert device.shape == ((small.STEPS,) if task == "train" else (small.STEPS, small.BATCH, small.SMALL_CNN.classes))
    np.testing.assert_allclose(host, device, rtol=SAME_PROGRAM_TOLERANCE)


def test_the_mode_that_compiles_computes_the_same_and_compiles_once(exercised):
    if "compile_mode" not in exercised.facts:
        pytest.skip("compile needs a C++ compiler")
    arrays = exercised.arrays
    np.testing.assert_allclose(arrays["compile_mode"], arrays["rule/adam"], rtol=SAME_PROGRAM_TOLERANCE)
    # Five steps each, a prediction at another batch size, another program of the process: one compilation each.
    assert [compiled["count"] for compiled in exercised.facts["compile_mode"]] == [1, 1]
    breaks = {compiled["graph_breaks"] for compiled in exercised.facts["compile_mode"]}
    assert breaks == ({0} if exercised.name == "torch" else {None})


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


def test_a_layer_without_a_translation_is_refused_by_name(exercised):
    message = exercised.facts["refusal"]
    assert "NewLayer" in message and CATALOG[exercised.name].title in message
