"""The same cell is the same arithmetic: the three backends' first losses, from the same weights and batches."""

import itertools

import numpy as np
import pytest
from msgspec.structs import replace
from planted_errors import PLANTED

from kit.backends.backend_catalog import FRAMEWORKS
from kit.workloads.parity_proof import PARITY_TOLERANCE, parity_form
from kit.workloads.workload_catalog import WORKLOADS, workload

pytestmark = pytest.mark.frameworks

# Those that differ in more than their optimizers.
NETWORKS = {replace(parity_form(workload(name, {})), name=""): name for name in reversed(WORKLOADS)}.values()
# 53 convolutions, and bidirectional loops in loops, take up to ten seconds to trace or compile in each framework.
SLOW = {"resnet50", "dblstm"}


def marked(name, *others):
    return pytest.param(name, *others, marks=pytest.mark.slow) if name in SLOW else pytest.param(name, *others)


def relative(a, b):
    return np.max(np.abs(a - b) / np.maximum(np.abs(a), np.abs(b)))


@pytest.mark.parametrize("pair", list(itertools.combinations(FRAMEWORKS, 2)), ids="-".join)
@pytest.mark.parametrize("name", [marked(name) for name in NETWORKS])
def test_losses_agree(exercise_of, name, pair):
    a, b = (exercise_of(backend).answer("parity", name) for backend in pair)
    assert a.shape == b.shape
    assert relative(a, b) <= PARITY_TOLERANCE


@pytest.mark.parametrize(
    ("name", "error"), [marked(name, error) for name, errors in PLANTED.items() for error in errors]
)
def test_a_planted_error_is_caught(exercise_of, name, error):
    right = exercise_of("tensorflow").answer("parity", name)
    assert relative(exercise_of("torch").answer("parity", name, error), right) > 2 * PARITY_TOLERANCE
