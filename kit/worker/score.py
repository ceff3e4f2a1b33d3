"""The score of a network on the test split: what it predicts for every sample, and how long one pass takes."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.backends.protocol import Program
from kit.clock import now_ns
from kit.profile.launch import SYNTHETIC
from kit.profile.reason import Reason, reason
from kit.worker.inputs import Inputs
from kit.workloads.data.batches import scoring_batches

# At most: its activations fit beside any cell's own.
SCORING_BATCH = 500


class Score(NamedTuple):
    """What a pass over the test split gave.

    Attributes:
        test_ns: of the second pass, in which nothing is compiled: from host memory to outputs back on the host.
        confusion: samples by [true class][predicted class]; None of a network that reconstructs its input.
        mean_squared_error: of such a network, over samples and elements.
        reason: why there is neither.
    """

    test_ns: int | None = None
    confusion: list[list[int]] | None = None
    mean_squared_error: float | None = None
    reason: Reason | None = None


def score(program: Program, inputs: Inputs) -> Score:
    """Predict every test sample, dropout off, and count."""
    samples = inputs.samples("test")
    total, workload = len(samples.targets), inputs.workload
    batches = scoring_batches(workload, inputs.data, samples, ceil(total / ceil(total / SCORING_BATCH)))
    for batch in batches[:1]:
        program.predict(batch)
    begin_ns = now_ns()
    outputs = np.concatenate([program.predict(batch) for batch in batches])[:total]
    test_ns = now_ns() - begin_ns
    if inputs.used.name == SYNTHETIC:
        return Score(test_ns, reason=reason("synthetic_data"))
    if not np.isfinite(outputs).all():
        return Score(test_ns, reason=reason("output_not_finite"))
    if workload.loss == "reconstruction":
        wanted = np.concatenate([batch.inputs for batch in batches])[:total]
        return Score(test_ns, mean_squared_error=float(np.mean((outputs - wanted) ** 2, dtype=np.float64)))
    return Score(test_ns, confusion=_confusion(samples.targets, outputs.argmax(1), workload.classes).tolist())


def _confusion(true: NDArray[np.integer], predicted: NDArray[np.integer], classes: int) -> NDArray[np.int64]:
    """Return counts of shape (classes, classes), from class indices of shape (samples,)."""
    return np.bincount(true.astype(np.int64) * classes + predicted, minlength=classes**2).reshape(classes, classes)
