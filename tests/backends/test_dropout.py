"""Dropout drops in training, scales what it keeps, and is off everywhere else.

One feature of 1 goes through dropout into logits (k, 0) with target 0. It is dropped with probability r, else it is
1 / (1 - r), so the mean loss tends to r·ln 2 + (1 - r)·ln(1 + exp(-k / (1 - r))).
"""

import math

import numpy as np
import pytest
import small_workloads as small

pytestmark = pytest.mark.frameworks

LOSS_IF_DROPPED = math.log(2)
LOSS_IF_KEPT = math.log1p(math.exp(-small.DROPOUT_KERNEL / (1 - small.DROPOUT_RATE)))
EXPECTED = small.DROPOUT_RATE * LOSS_IF_DROPPED + (1 - small.DROPOUT_RATE) * LOSS_IF_KEPT
STANDARD_ERROR = (LOSS_IF_DROPPED - LOSS_IF_KEPT) * math.sqrt(
    small.DROPOUT_RATE * (1 - small.DROPOUT_RATE) / small.DROPOUT_BATCH
)
SIGMAS = 5  # one false alarm in two million draws; the seeds are fixed besides


def test_rate_and_scale_in_training_and_after_a_prediction(exercised):
    losses = exercised.arrays["dropout/train"]
    assert len(set(losses)) == 3  # each step drops anew
    assert np.max(np.abs(losses - EXPECTED)) < SIGMAS * STANDARD_ERROR


@pytest.mark.parametrize("name", ["dropout/infer", "dropout/predicted"])
def test_off_in_inference_and_in_predictions(exercised, name):
    logits = exercised.arrays[name]
    # With dropout on, a quarter of the logits would be (0, 0).
    np.testing.assert_array_equal(logits, np.broadcast_to([small.DROPOUT_KERNEL, 0.0], logits.shape))
