"""The same cell is the same arithmetic: the three backends' first losses, from the same weights and batches."""

import itertools

import numpy as np
import pytest
from exercise import PARITY_BATCH, SEEDS

from kit.backends.catalog import CATALOG
from kit.profile.parity import PARITY_STEPS, PARITY_TOLERANCE

pytestmark = pytest.mark.frameworks

PLANTED = ("epsilon", "rho", "learning_rate", "kernel", "flatten", "padding")


def relative(a, b):
    return np.max(np.abs(a - b) / np.maximum(np.abs(a), np.abs(b)))


@pytest.mark.parametrize("pair", list(itertools.combinations(CATALOG, 2)), ids="-".join)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("workload", PARITY_BATCH)
def test_losses_agree(exercise_of, workload, seed, pair):
    a, b = (exercise_of(name).arrays[f"parity/{workload}/{seed}"] for name in pair)
    assert a.shape == b.shape == (PARITY_STEPS,)
    assert relative(a, b) <= PARITY_TOLERANCE


@pytest.mark.parametrize("workload", PARITY_BATCH)
def test_losses_depend_on_the_weights_and_the_batches(exercised, workload):
    first, second = (exercised.arrays[f"parity/{workload}/{seed}"] for seed in SEEDS)
    assert relative(first, second) > 10 * PARITY_TOLERANCE
