"""What a program is fed with: data loaded, cut into batches, resident or not; and its test split, scored."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import NamedTuple

from kit.backends.protocol import DeviceBatch, HostBatch, Program
from kit.profile.cell import Cell
from kit.profile.launch import SYNTHETIC, DataUsed, Evaluation
from kit.profile.reason import reason
from kit.worker.messages import Prepare
from kit.workloads.catalog import workload as workload_of
from kit.workloads.data.batches import batch_pool, evaluation_batches, pool_sha256, samples_in
from kit.workloads.data.choice import dataset
from kit.workloads.data.dataset import Dataset
from kit.workloads.workload import Workload

# Divides the 10,000 test samples of MNIST, so that every one is scored; its activations fit beside any cell's own.
EVALUATION_BATCH = 500


class Inputs(NamedTuple):
    """What the steps are fed with."""

    data: Dataset
    pool: list[HostBatch]
    used: DataUsed


def load_inputs(cell: Cell, asked: Prepare) -> Inputs:
    """Read the split that the cell runs on: the training split for `train`, the test split for `infer`."""
    workload = workload_of(cell.workload, cell.parameters)
    used = asked.data[workload.data]
    data = dataset(used, stands_for=workload.data)
    pool = batch_pool(
        workload, data, data.load("train" if cell.task == "train" else "test"), cell.batch, seed=asked.seed
    )
    return Inputs(data, pool, DataUsed(name=used, sha256=pool_sha256(pool), pool_batches=len(pool)))


def feed(program: Program, pool: list[HostBatch], cell: Cell) -> Iterator[DeviceBatch]:
    """Return batches without end: resident ones (feed "device"), or host ones that each step copies (feed "host")."""
    return cycle([program.put(batch) for batch in pool] if cell.feed == "device" else pool)


def evaluate(program: Program, workload: Workload, inputs: Inputs, updates: int) -> Evaluation:
    """Score every test sample after `updates` optimizer updates; null, with the reason, on synthetic data."""
    if inputs.used.name == SYNTHETIC:
        return Evaluation(accuracy=None, samples=None, updates=updates, reason=reason("synthetic_data"))
    samples = inputs.data.load("test")
    batches = evaluation_batches(workload, inputs.data, samples, min(EVALUATION_BATCH, len(samples.targets)))
    scored = samples_in(batches)
    return Evaluation(accuracy=program.evaluate(batches) / scored, samples=scored, updates=updates)
