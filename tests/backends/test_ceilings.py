"""Each framework's operations compute what they say; FLOPs of layers against the frameworks' own counters."""

import numpy as np
import pytest
import small_workloads as small

from kit.workloads.catalog import WORKLOADS, workload
from kit.workloads.cost import cost_of

pytestmark = pytest.mark.frameworks

# Both count a product with a state of zeros otherwise, or a loop's body once, or a library's kernel not at all.
RECURRENT = {"rnn": 28, "lstm": 28, "dblstm": 128}


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_every_operation_runs_in_its_precisions_and_leaves_finite_numbers(exercised, device):
    shapes = {"matmul": (64, 64), "triad": (1 << 18,), "copy_in": (1 << 24,), "copy_out": (1 << 24,)}
    for name, shape in shapes.items():
        array = exercised.arrays[f"ceilings/{device}/{name}/float32"]
        assert array.shape == shape or (name, exercised.name) == ("triad", "tensorflow")
        assert np.isfinite(array).all()
    # Of numbers between 0 and 1, 64 at a time.
    for precision in ("float32", "bfloat16"):
        product = exercised.arrays[f"ceilings/{device}/matmul/{precision}"]
        assert product.min() > 0 and 10 < product.mean() < 22
    assert not np.array_equal(product, exercised.arrays[f"ceilings/{device}/matmul/float32"])
    for key in (key for key in exercised.facts if key.startswith(f"ceilings/{device}")):
        facts = exercised.facts[key]
        assert facts["device"] == "cpu" and facts["recompiled"] <= 0 and facts["settings"], key


def flops(name, task):
    of = workload(name, {})
    return cost_of(of, task, small.BATCH, "float32").flops


@pytest.mark.parametrize("task", ["infer", "train"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_pytorch_counts_the_same_where_its_counter_is_right(exercise_of, name, task):
    counted = exercise_of("torch").facts[f"flops/{name}/{task}"]
    if name not in RECURRENT:
        assert counted == flops(name, task)
    elif name == "rnn":
        # Without the first step's product with the state, which is zero.
        assert counted == pytest.approx(flops(name, task), rel=0.05)


@pytest.mark.parametrize("name", WORKLOADS)
def test_xla_counts_about_the_same_and_of_a_loop_its_body_once(exercise_of, name):
    counted = exercise_of("jax").facts[f"flops/{name}/infer"] * RECURRENT.get(name, 1)
    # Elementwise work is in it: most of a transformer's beside small products, least of large ones.
    assert counted == pytest.approx(flops(name, "infer"), rel=0.2 if name == "transformer" else 0.06)
