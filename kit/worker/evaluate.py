"""Score a trained program on the real test split."""

from __future__ import annotations

from kit.backends.protocol import Program
from kit.profile.launch import Evaluation
from kit.workloads.data.batches import evaluation_batches, samples_in
from kit.workloads.data.dataset import Dataset
from kit.workloads.workload import Workload

# Divides the 10 000 test samples of MNIST, so that every one is scored; its activations fit beside any cell's own.
EVALUATION_BATCH = 500


def evaluate(program: Program, workload: Workload, dataset: Dataset, updates: int) -> Evaluation:
    """Accuracy over every test sample after `updates` optimizer updates; null, with the reason, on synthetic data."""
    if dataset.name != "mnist":
        reason = "synthetic data: an accuracy on it would say nothing"
        return Evaluation(accuracy=None, samples=None, updates=updates, reason=reason)
    batches = evaluation_batches(workload, *dataset.split("test"), EVALUATION_BATCH)
    samples = samples_in(batches)
    return Evaluation(accuracy=program.evaluate(batches) / samples, samples=samples, updates=updates)
