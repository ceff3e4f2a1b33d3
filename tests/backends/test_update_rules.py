"""Each backend's optimizers against the rules by hand, in float64."""

import numpy as np
import numpy_reference as reference
import pytest
import small_workloads as small

from kit.workloads.weights import initial_weights

pytestmark = pytest.mark.frameworks

# float32 keeps 1.2e-7; five steps of a small network lose less than ten of those.
FLOAT32_TOLERANCE = 2e-6


@pytest.mark.parametrize("form", ["rule", "rule as on a GPU"])
@pytest.mark.parametrize("rule", small.RULES)
def test_losses_follow_the_rule(exercised, rule, form):
    of = small.small_mlp(rule)
    network = reference.ReferenceMlp(of, initial_weights(of, 0))
    by_hand = np.array([network.step(*batch) for batch in small.random_batches(of)])
    away = np.max(np.abs(exercised.arrays[f"{form}/{rule}"] - by_hand))
    assert away < FLOAT32_TOLERANCE * np.max(np.abs(by_hand))
