"""Score a trained program on the real test split."""

from __future__ import annotations

from kit.backends.protocol import Program
from kit.profile.launch import Evaluation
from kit.workloads.data.batches import evaluation_batches, samples_in
from kit.workloads.data.dataset import Dataset
from kit.workloads.workload import Workload

# Divides the 10 000 test samples of MNIST, so that every one is scored; its activations fit beside any cell's own.
EVALUATION_BATCH = 500


def evaluate(program: Program, workload: Workload, dataset: Dataset) -> Evaluation:
    """Accuracy over every test sample; null on synthetic data, where it would say nothing."""
    if dataset.name != "mnist":
        return Evaluation(accuracy=None, samples=None, reason="synthetic data: an accuracy on it would say nothing")
    batches = evaluation_batches(workload, *dataset.split("test"), EVALUATION_BATCH)
    samples = samples_in(batches)
    return Evaluation(accuracy=program.evaluate(batches) / samples, samples=samples)
