"""Each backend's optimizers against the rules by hand, in float64."""

import numpy as np
import numpy_reference as reference
import pytest
import small_workloads as small

from kit.workloads.optimizers import Adam, RMSprop
from kit.workloads.weights import initial_weights

pytestmark = pytest.mark.frameworks

# float32 keeps 1.2e-7; five steps of a small network lose less than ten of those.
FLOAT32_TOLERANCE = 2e-6


def by_hand(rule, optimizer=None):
    of = small.small_mlp(rule)
    network = reference.ReferenceMlp(of, initial_weights(of, 0))
    network.rule = optimizer or network.rule
    losses = [network.step(*batch) for batch in small.random_batches(of)]
    return np.array(losses), network.weights


def relative(ours, truth):
    return np.max(np.abs(ours - truth)) / np.max(np.abs(truth))


@pytest.mark.parametrize("rule", small.RULES)
def test_losses_and_weights_follow_the_rule(exercised, rule):
    losses, weights = by_hand(rule)
    assert relative(exercised.arrays[f"rule/{rule}/losses"], losses) < FLOAT32_TOLERANCE
    ours = exercised.under(f"rule/{rule}/weights")
    assert ours.keys() == weights.keys()
    for name, truth in weights.items():
        assert relative(ours[name], truth) < FLOAT32_TOLERANCE, name


@pytest.mark.parametrize("rule", small.RULES)
def test_the_weights_have_moved(exercised, rule):
    of = small.small_mlp(rule)
    for name, before in initial_weights(of, 0).items():
        after = exercised.arrays[f"rule/{rule}/weights/{name}"]
        assert relative(after, before if before.any() else np.ones_like(before)) > 100 * FLOAT32_TOLERANCE, name


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("rmsprop", RMSprop(learning_rate=0.01, rho=0.8, epsilon=1.1e-3)),
        ("adam", Adam(learning_rate=0.01, beta_1=0.8, beta_2=0.95, epsilon=1.1e-2)),
    ],
)
def test_a_tenth_more_epsilon_would_show(exercised, rule, wrong):
    losses, _ = by_hand(rule, wrong)
    assert relative(exercised.arrays[f"rule/{rule}/losses"], losses) > FLOAT32_TOLERANCE
