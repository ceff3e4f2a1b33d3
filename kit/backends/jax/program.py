"""JAX: Flax NNX modules and optax under jax.jit, staged ahead of time, with the state donated.

The step is a pure function of a flat list of arrays: the "Functional training loop" of Flax' guide
(https://flax.readthedocs.io/en/latest/guides/performance.html), but the tree of states is walked once and not in each
step.

Devices that share a batch are a mesh with one axis: each has the whole state and its part of every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec
from numpy.typing import NDArray

from kit.backends.entry import choice_set, tf32_setting, variables_set
from kit.backends.jax import proof
from kit.backends.jax.layers import build_modules, build_optimizer
from kit.backends.protocol import DeviceBatch, Launches, Program, RankGroup, all_reduces, kernel_ops, up_to
from kit.environment import JAX_DONATE
from kit.profile.cell import Cell
from kit.profile.schema import Compilations, WhatRan
from kit.workloads.seeded_arrays import HostBatch, Weights
from kit.workloads.workload import Workload

JaxBatch = tuple[jax.Array, jax.Array]
Leaves = list[jax.Array]
# The fraction of a GPU's memory that XLA takes. The second is the deprecated name of the first; XLA refuses both.
MEMORY_FRACTION = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
MEMORY_VARIABLES = (*MEMORY_FRACTION, "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_ALLOCATOR")
AXIS = "batch"  # of the mesh


class JaxProgram(Program):
    """A cell in JAX. See `kit.backends.protocol.Program`."""

    _executable: Any = None
    _output: jax.Array | None = None  # of the last step
    _targets_at = ""  # the devices of a resident batch's targets
    _kept: list[NDArray[Any]] | None = None  # the first state, on the host

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, seed: int, mesh: Mesh) -> None:
        self._mesh = mesh
        self._on_cpu, self._on_gpu = cell.device == "cpu", cell.device == "gpu"
        self._batch_shape = (cell.batch, *workload.input_shape)
        self._target_shape = (cell.batch, *workload.target_shape)
        self._input_type = np.int32 if workload.takes_tokens else np.float32
        self._host_feed = cell.feed == "host"
        self._train = cell.traits.trains
        self._loss = _reconstruction if workload.loss == "reconstruction" else _cross_entropy
        self._optimizer = build_optimizer(workload.optimizer)
        with jax.default_device(mesh.device):
            model = build_modules(workload, weights, seed, computed_in(cell.precision))
            model.train()
            self._graph, params, rest = nnx.split(model, nnx.Param, ...)
            model.eval()
            self._eval_graph, _ = nnx.split(model)
            optimizer_state = self._optimizer.init(params) if self._train else None
        leaves, self._tree = jax.tree.flatten((params, rest, optimizer_state))
        self._leaves: Leaves = mesh.put_everywhere([_plain(leaf) for leaf in leaves])
        jax.block_until_ready(self._leaves)
        self._logits = jax.jit(self._infer_step)

    def put(self, batch: HostBatch) -> JaxBatch:
        """Copy one batch to the device."""
        resident: JaxBatch = self._mesh.put_split(batch, may_alias=False)
        jax.block_until_ready(resident)
        self._targets_at = ", ".join(sorted(map(str, resident[1].devices())))
        return resident

    def keep(self) -> bool:
        """Copy weights, optimizer state and dropout's counters."""
        self._kept = [np.array(leaf.addressable_data(0)) for leaf in self._leaves]
        return True

    def restore(self) -> bool:
        """Replace all leaves: the executable takes them as arguments, and the old ones were donated to it."""
        if self._kept is None:
            return False
        for place, array in enumerate(self._kept):
            # One by one: the device never holds all of them twice.
            self._leaves[place] = self._mesh.replicated(array)
        jax.block_until_ready(self._leaves)
        return True

    def state(self, most: int) -> Iterator[NDArray[Any]]:
        """Return the leaves."""
        return (np.asarray(leaf.addressable_data(0)) for leaf in up_to(most, self._leaves))

    def trace(self) -> bool:
        """Trace to a jaxpr and lower it to StableHLO."""
        inputs = jax.ShapeDtypeStruct(self._batch_shape, self._input_type, sharding=self._mesh.split)
        targets = jax.ShapeDtypeStruct(self._target_shape, np.int32, sharding=self._mesh.split)
        jitted = self._jitted_training() if self._train else jax.jit(self._infer_step)
        self._traced = jitted.trace(self._leaves, inputs, targets).lower()
        return True

    def compile(self) -> bool:
        """Compile the traced step to an executable, which `step` calls and which cannot recompile."""
        self._executable = self._traced.compile()
        return True

    def step(self, batch: DeviceBatch) -> jax.Array:
        """Dispatch one optimizer update or one forward pass, and do not wait for it."""
        if self._host_feed:
            batch = self._mesh.put_split(batch)
        if self._train:
            self._leaves, self._output = self._executable(self._leaves, *batch)
        else:
            self._output = self._executable(self._leaves, *batch)
        return self._output

    def synchronize(self) -> None:
        """Wait for the last step's output. The new state comes from the same executable and is ready with it."""
        if self._output is not None:
            self._output.block_until_ready()

    def predict(self, batch: HostBatch) -> NDArray[np.float32]:
        """Return the output of a separate function."""
        return self.to_host(self._logits(self._leaves, *self._mesh.put_everywhere(tuple(batch))))

    def to_host(self, output: jax.Array) -> NDArray[np.float32]:
        """Copy a loss or logits."""
        return self._mesh.to_host(output)

    def kernels(self) -> list[str]:
        """Name the loops, products and library calls of the executable."""
        return kernel_ops(self._executable.as_text())

    def settings(self) -> dict[str, str]:
        """Return the precision of products, and the memory settings of a GPU. XLA tries kernels and takes the best."""
        precision = str(jax.config.jax_default_matmul_precision)
        if self._on_cpu:
            return {"jax_default_matmul_precision": precision} | variables_set(JAX_DONATE)
        if self._on_gpu:
            precision = tf32_setting(precision)
        settings = {"jax_default_matmul_precision": precision, "autotuning": "XLA's"}
        if self._targets_at:
            settings["targets"] = self._targets_at
        return settings | variables_set(JAX_DONATE, *(MEMORY_VARIABLES if self._on_gpu else ()))

    def compilations(self) -> Compilations:
        """Count the executable: `step` calls nothing else."""
        return Compilations(count=int(self._executable is not None))

    def what_ran(self, batch: DeviceBatch) -> WhatRan:
        """Return what the executable costs, which is all that `step` calls, and on a GPU what it launches."""
        flops, arguments_b = proof.cost_of(self._executable.runtime_executable())
        launches = proof.launched(self, batch) if self._on_gpu else Launches()
        return WhatRan(runs={"xla": 1}, flops=flops, arguments_b=arguments_b, **launches._asdict())

    def _jitted_training(self) -> Any:  # noqa: ANN401 - jax names no type
        """Return the step. The loss is a mean, so on several devices the partitioner averages gradients."""
        donated = () if choice_set(JAX_DONATE) == "0" else 0
        if not self._mesh.is_split:
            return jax.jit(self._train_step, donate_argnums=donated)
        step = self._train_step if all_reduces() else self._mesh.each_by_itself(self._train_step)
        return jax.jit(step, donate_argnums=donated, out_shardings=self._mesh.everywhere)

    def _train_step(self, leaves: Leaves, inputs: jax.Array, targets: jax.Array) -> tuple[Leaves, jax.Array]:
        params, rest, optimizer_state = jax.tree.unflatten(self._tree, leaves)
        model = nnx.merge(self._graph, params, rest)
        loss, grads = nnx.value_and_grad(self._loss)(model, inputs, targets)
        updates, new_optimizer_state = self._optimizer.update(grads, optimizer_state, params)
        new_params = optax.apply_updates(params, updates)
        new_rest = nnx.state(model, nnx.Not(nnx.Param))  # dropout's counters have moved on
        return jax.tree.leaves((new_params, new_rest, new_optimizer_state)), loss

    def _infer_step(self, leaves: Leaves, inputs: jax.Array, _targets: jax.Array) -> Any:  # noqa: ANN401 - logits
        params, rest, _ = jax.tree.unflatten(self._tree, leaves)
        return nnx.merge(self._eval_graph, params, rest)(inputs)


def computed_in(precision: str) -> Any:  # noqa: ANN401 - a type of NumPy's or of ml_dtypes
    """Return the type that layers compute in."""
    return jnp.bfloat16 if precision == "bfloat16" else jnp.float32


def _cross_entropy(model: nnx.Sequential, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(model(inputs).astype(jnp.float32), targets).mean()


def _reconstruction(model: nnx.Sequential, inputs: jax.Array, _targets: jax.Array) -> jax.Array:
    return optax.squared_error(model(inputs).astype(jnp.float32), inputs).mean()


def _plain(leaf: jax.Array) -> jax.Array:
    """Return dropout keys as plain uint32 arrays, because JAX does not dispatch typed keys by its fast path."""
    return jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


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

    def replicated(self, array: NDArray[Any]) -> jax.Array:
        """Copy an array that each rank has to the devices of this one, without a word to the others."""
        here = sorted(self.everywhere.addressable_devices, key=lambda device: device.id)
        copies = [jax.device_put(array, device, may_alias=False) for device in here]
        return jax.make_array_from_single_device_arrays(array.shape, self.everywhere, copies)

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
