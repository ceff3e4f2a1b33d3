"""Devices that share a batch: a mesh with one axis. Each has the whole state and its part of every batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src.lib import _jax
from jax.sharding import NamedSharding, PartitionSpec
from numpy.typing import NDArray

from kit.backends.ranks import HEARTBEAT_LIMIT_S, RankGroup

AXIS = "batch"
# Ranks wait so long for the last to join.
JOIN_LIMIT_S = 120


class Mesh:
    """The devices of a program, in this process and in its other ranks.

    Args:
        kind: the kind of device.
        ranks: the processes that share the batch; null: one device, which needs no mesh.
        devices: the number of devices of this process.
    """

    def __init__(self, kind: str, ranks: RankGroup | None = None, devices: int = 1) -> None:
        local = jax.local_devices(backend=kind)[:devices]
        self._is_whole = ranks is None or ranks.size == 1  # this process has all devices
        every = local if self._is_whole else jax.devices(kind)
        self.device = local[0]  # state is made here, then copied to all
        mesh = jax.sharding.Mesh(np.array(every), (AXIS,))
        self._mesh = mesh
        self.is_split = is_split = ranks is not None
        alone = jax.sharding.SingleDeviceSharding(self.device)
        self.everywhere: jax.sharding.Sharding = NamedSharding(mesh, PartitionSpec()) if is_split else alone
        self.split: jax.sharding.Sharding = NamedSharding(mesh, PartitionSpec(AXIS)) if is_split else alone

    def put_everywhere(self, arrays: Any) -> Any:  # noqa: ANN401 - any tree
        """Copy arrays to every device. They may be donated, so they share no memory with what is still in use."""
        if self.is_split:
            arrays = jax.tree.map(np.asarray, arrays)
        return jax.device_put(arrays, self.everywhere, may_alias=False)

    def put_split(self, arrays: Sequence[NDArray[Any]], *, may_alias: bool | None = None) -> Any:  # noqa: ANN401
        """Copy this process's part of a batch, to each device its own part."""
        if self._is_whole:
            # One device is named as such, as people write it; a sharding would add 2 µs to the copy of each step.
            return jax.device_put(tuple(arrays), self.split if self.is_split else self.device, may_alias=may_alias)
        return tuple(jax.make_array_from_process_local_data(self.split, array) for array in arrays)

    def to_host(self, output: jax.Array) -> NDArray[np.float32]:
        """Copy an output; if it is split over processes, this process's part."""
        if self._is_whole or output.is_fully_replicated:
            return np.array(output, np.float32)
        shards = sorted(output.addressable_shards, key=lambda shard: shard.index[0].start or 0)
        return np.concatenate([np.array(shard.data, np.float32) for shard in shards])

    def each_by_itself(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Return a training step that each device makes with its own part of the batch, without averaging."""
        shared, part = PartitionSpec(), PartitionSpec(AXIS)
        specs = {"in_specs": (shared, part, part), "out_specs": shared}
        apart: Callable[..., Any] = jax.shard_map(step, mesh=self._mesh, check_vma=False, **specs)
        return apart


def join(ranks: RankGroup, kind: str, devices: int) -> None:
    """Give this process its CPU devices, and connect it to the other ranks.

    JAX documentation, "Multi-controller JAX" (https://docs.jax.dev/en/latest/multi_process.html).
    Left to itself, the coordinator binds every interface, and gloo the address of the host's own name.
    """
    if kind == "cpu":
        jax.config.update("jax_num_cpu_devices", devices)
    if ranks.size > 1:
        ranks.give_port()
        jax.distributed.initialize(
            ranks.addresses[0],
            ranks.size,
            ranks.number,
            cluster_detection_method="deactivate",  # the addresses are given
            initialization_timeout=JOIN_LIMIT_S,
            heartbeat_timeout_seconds=HEARTBEAT_LIMIT_S,
            coordinator_bind_address=ranks.addresses[0],
        )
        # JAX has no setting for the interface: its CPU client calls this function without one (jax-ml/jax,
        # `make_cpu_client` in xla_bridge.py).
        make = functools.partial(_jax.make_gloo_tcp_collectives, interface=ranks.interface())
        _jax.make_gloo_tcp_collectives = make
