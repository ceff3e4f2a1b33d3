"""Each backend's optimizers against the rules by hand, in float64."""

import numpy as np
import numpy_reference as reference
import pytest
import small_workloads as small

from kit.workloads.optimizers import SGD, Adadelta, Adam, RMSprop
from kit.workloads.weights import initial_weights

pytestmark = pytest.mark.frameworks

# float32 keeps 1.2e-7; five steps of a small network lose less than ten of those.
FLOAT32_TOLERANCE = 2e-6


def by_hand(rule, optimizer=None):
    of = small.small_mlp(rule)
    network = reference.ReferenceMlp(of, initial_weights(of, 0))
    network.rule = optimizer or network.rule
    return np.array([network.step(*batch) for batch in small.random_batches(of)])


def relative(ours, truth):
    return np.max(np.abs(ours - truth)) / np.max(np.abs(truth))


@pytest.mark.parametrize("rule", small.RULES)
def test_losses_follow_the_rule(exercised, rule):
    assert relative(exercised.arrays[f"rule/{rule}"], by_hand(rule)) < FLOAT32_TOLERANCE


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("sgd", SGD(learning_rate=0.0501)),
        ("rmsprop", RMSprop(learning_rate=0.01, rho=0.8, epsilon=1.1e-3)),
        ("adadelta", Adadelta(learning_rate=0.5, rho=0.9, epsilon=1.1e-3)),
        ("adam", Adam(learning_rate=0.01, beta_1=0.8, beta_2=0.95, epsilon=1.1e-2)),
    ],
)
def test_a_tenth_more_epsilon_would_show(exercised, rule, wrong):
    assert relative(exercised.arrays[f"rule/{rule}"], by_hand(rule, wrong)) > 2 * FLOAT32_TOLERANCE
