"""What the steps of a launch are fed with: data loaded, cut into batches, resident or not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import NamedTuple

from kit.backends.protocol import DeviceBatch, HostBatch, Program
from kit.profile.launch import DataUsed, LaunchRequest
from kit.workloads.data import dataset as datasets
from kit.workloads.data.batches import POOL_BATCHES, batch_pool, pool_sha256
from kit.workloads.data.dataset import Dataset
from kit.workloads.data.split import Split
from kit.workloads.workload import Workload


class Inputs(NamedTuple):
    """What the steps are fed with."""

    dataset: Dataset
    pool: list[HostBatch]
    used: DataUsed


def load_inputs(workload: Workload, request: LaunchRequest) -> Inputs:
    """Read only the splits that the launch needs: an infer cell runs on the test split."""
    cell = request.cell
    train = cell.task == "train"
    wanted: tuple[Split, ...] = ("train", "test") if train and request.evaluate else ("train",) if train else ("test",)
    dataset = datasets.load(request.data, splits=wanted)
    images, labels = dataset.split("train" if train else "test")
    pool = batch_pool(workload, images, labels, cell.batch, POOL_BATCHES, request.seed)
    used = DataUsed(
        name=dataset.name,
        sha256=pool_sha256(pool),
        train_samples=len(dataset.train_labels) if dataset.train_labels is not None else None,
        test_samples=len(dataset.test_labels) if dataset.test_labels is not None else None,
        pool_batches=len(pool),
    )
    return Inputs(dataset, pool, used)


def feed(program: Program, pool: list[HostBatch], request: LaunchRequest) -> Iterator[DeviceBatch]:
    """Batches without end: resident ones (feed "device"), or host ones that each step copies (feed "host")."""
    return cycle([program.put(batch) for batch in pool] if request.cell.feed == "device" else pool)
