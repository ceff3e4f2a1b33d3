"""The same cell is the same arithmetic: the three backends' first losses, from the same weights and batches."""

import itertools

import numpy as np
import pytest
import small_workloads as small

from kit.backends.catalog import FRAMEWORKS
from kit.workloads.catalog import WORKLOADS
from kit.workloads.parity import PARITY_TOLERANCE

pytestmark = pytest.mark.frameworks


def relative(a, b):
    return np.max(np.abs(a - b) / np.maximum(np.abs(a), np.abs(b)))


@pytest.mark.parametrize("pair", list(itertools.combinations(FRAMEWORKS, 2)), ids="-".join)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_losses_agree(exercise_of, workload, pair):
    a, b = (exercise_of(name).arrays[f"parity/{workload}"] for name in pair)
    assert a.shape == b.shape and a.shape[1] == small.EARLY_STEPS
    assert min(map(relative, a, b)) <= PARITY_TOLERANCE


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_planted_error_is_caught(exercise_of, workload):
    right = exercise_of("tensorflow").arrays[f"parity/{workload}"][0]
    planted = exercise_of("torch").arrays[f"planted/{workload}"]
    assert len(planted) >= 2
    assert all(relative(losses, right) > 2 * PARITY_TOLERANCE for losses in planted)
