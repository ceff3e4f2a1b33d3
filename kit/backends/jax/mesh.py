"""Devices that share a batch: a mesh with one axis. State is on all of them, each has its part of every batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from numpy.typing import NDArray

from kit.backends.ranks import HEARTBEAT_LIMIT_S, RankPlace

AXIS = "batch"
# Until all ranks are there.
JOIN_LIMIT_S = 120


class Mesh:
    """The devices of a program: of this process, and of its other ranks.

    Args:
        kind: of device.
        ranks: this process among those that share the devices; null: one device, of which no mesh is made.
        devices: of this process.
    """

    def __init__(self, kind: str, ranks: RankPlace | None = None, devices: int = 1) -> None:
        local = jax.local_devices(backend=kind)[:devices]
        self._is_whole = ranks is None or ranks.size == 1  # this process sees all of them
        every = local if self._is_whole else jax.devices(kind)
        self.device = local[0]  # where what all share is made
        mesh = jax.sharding.Mesh(np.array(every), (AXIS,))
        self._mesh = mesh
        self.is_split = is_split = ranks is not None
        alone = jax.sharding.SingleDeviceSharding(self.device)
        self.everywhere: jax.sharding.Sharding = NamedSharding(mesh, PartitionSpec()) if is_split else alone
        self.split: jax.sharding.Sharding = NamedSharding(mesh, PartitionSpec(AXIS)) if is_split else alone

    def put_everywhere(self, arrays: Any) -> Any:  # noqa: ANN401 - any tree
        """Copy arrays to every device; what is donated may not share memory with anything that is still in use."""
        if self.is_split:
            arrays = jax.tree.map(np.asarray, arrays)
        return jax.device_put(arrays, self.everywhere, may_alias=False)

    def put_split(self, arrays: Sequence[NDArray[Any]], *, may_alias: bool | None = None) -> Any:  # noqa: ANN401
        """Copy this process' part of a batch, each device its own part of it."""
        if self._is_whole:
            # By its device, as people write it: a sharding costs a copy in each step 2 µs more.
            return jax.device_put(tuple(arrays), self.split if self.is_split else self.device, may_alias=may_alias)
        return tuple(jax.make_array_from_process_local_data(self.split, array) for array in arrays)

    def to_host(self, output: jax.Array) -> NDArray[np.float32]:
        """Copy an output: of a split one what this process has."""
        if self._is_whole or output.is_fully_replicated:
            return np.array(output, np.float32)
        shards = sorted(output.addressable_shards, key=lambda shard: shard.index[0].start or 0)
        return np.concatenate([np.array(shard.data, np.float32) for shard in shards])

    def each_by_itself(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Return a training step that every device makes with its own part alone, nothing averaged."""
        shared, part = PartitionSpec(), PartitionSpec(AXIS)
        specs = {"in_specs": (shared, part, part), "out_specs": shared}
        apart: Callable[..., Any] = jax.shard_map(step, mesh=self._mesh, check_vma=False, **specs)
        return apart


def join(ranks: RankPlace, kind: str, devices: int) -> None:
    """Give this process its CPU devices, and connect it to the other ranks.

    JAX documentation, "Multi-controller JAX" (https://docs.jax.dev/en/latest/multi_process.html).
    """
    if kind == "cpu":
        jax.config.update("jax_num_cpu_devices", devices)
    if ranks.size > 1:
        jax.distributed.initialize(
            ranks.addresses[0],
            ranks.size,
            ranks.number,
            cluster_detection_method="deactivate",  # the addresses are given
            initialization_timeout=JOIN_LIMIT_S,
            heartbeat_timeout_seconds=HEARTBEAT_LIMIT_S,
        )
