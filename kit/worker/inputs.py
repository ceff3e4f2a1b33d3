"""What a program is fed with: data loaded, cut into batches, resident or not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import cycle
from typing import NamedTuple

from kit.backends.protocol import DeviceBatch, Program, RankGroup
from kit.profile.cell import Cell
from kit.profile.schema import DataUsed
from kit.workloads.datasets import Dataset, Samples, Split
from kit.workloads.seeded_arrays import POOL_BATCHES, HostBatch, batch_pool, part_of, pool_sha256
from kit.workloads.workload import Workload
from kit.workloads.workload_catalog import dataset, workload


class Inputs(NamedTuple):
    """What the steps are fed with."""

    workload: Workload
    data: Dataset
    pool: list[HostBatch]  # whole batches
    rank: RankGroup
    used: DataUsed

    def part(self, batch: HostBatch) -> HostBatch:
        """Return this rank's part of a batch."""
        return part_of(batch, self.rank.number, self.rank.size)

    def tokens(self, cell: Cell) -> int | None:
        """Return how many tokens a step reads, or writes in decoding; None: samples of other data have none."""
        if not self.workload.takes_tokens:
            return None
        return cell.batch if cell.task == "decode" else cell.batch * math.prod(self.workload.input_shape)

    def samples(self, split: Split) -> Samples:
        """Return a whole split."""
        return _load(self.used.name, self.workload.data, split)


def load_inputs(cell: Cell, used: str, seed: int, rank: RankGroup) -> Inputs:
    """Read the split that the cell runs on: the training split, or the test split where it does not train.

    `used`: name of the data set, or "synthetic".
    """
    network = workload(cell.workload, cell.parameters)
    data = dataset(used, stands_for=network.data)
    samples = _load(used, network.data, "train" if cell.traits.trains else "test")
    # Decoding reads one prompt of each sample, and a cache of keys and values belongs to it.
    most = 1 if cell.task == "decode" else POOL_BATCHES
    pool = batch_pool(network, data, samples, cell.batch, seed=seed, most=most)
    return Inputs(network, data, pool, rank, DataUsed(name=used, sha256=pool_sha256(pool), pool_batches=len(pool)))


def feed(program: Program, pool: list[HostBatch], cell: Cell) -> Iterator[DeviceBatch]:
    """Return batches without end: resident ones (feed "device"), or host ones that each step copies (feed "host")."""
    return cycle([(program.put if cell.feed == "device" else program.pin)(batch) for batch in pool])


@lru_cache(maxsize=2)
def _load(name: str, stands_for: str, split: Split) -> Samples:
    """Read a split once for all programs of the process."""
    return dataset(name, stands_for).load(split)
