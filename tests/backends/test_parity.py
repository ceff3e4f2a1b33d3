"""The same cell is the same arithmetic: the three backends' first losses, from the same weights and batches."""

import itertools

import numpy as np
import pytest
from exercise import SEEDS

from kit.backends.catalog import CATALOG
from kit.profile.parity import PARITY_STEPS, PARITY_TOLERANCE
from kit.workloads.catalog import WORKLOADS

pytestmark = pytest.mark.frameworks


def relative(a, b):
    return np.max(np.abs(a - b) / np.maximum(np.abs(a), np.abs(b)))


@pytest.mark.parametrize("pair", list(itertools.combinations(CATALOG, 2)), ids="-".join)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_losses_agree(exercise_of, workload, seed, pair):
    a, b = (exercise_of(name).arrays[f"parity/{workload}/{seed}"] for name in pair)
    assert a.shape == b.shape == (PARITY_STEPS,)
    assert relative(a, b) <= PARITY_TOLERANCE


@pytest.mark.parametrize("workload", WORKLOADS)
def test_losses_depend_on_the_weights_and_the_batches(exercised, workload):
    first, second = (exercised.arrays[f"parity/{workload}/{seed}"] for seed in SEEDS)
    assert relative(first, second) > 10 * PARITY_TOLERANCE


@pytest.mark.parametrize("truth", ["tensorflow", "jax"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_planted_error_is_caught(exercise_of, workload, truth):
    right = exercise_of(truth).arrays[f"parity/{workload}/{SEEDS[0]}"]
    planted = exercise_of("torch").under(f"planted/{workload}")
    assert planted
    for error, losses in planted.items():
        assert relative(losses, right) > 5 * PARITY_TOLERANCE, error
