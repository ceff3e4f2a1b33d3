"""JAX: Flax NNX modules and optax under jax.jit, staged ahead of time, with the state donated.

The step is a pure function of a flat list of arrays: the "Functional training loop" of Flax' guide
(https://flax.readthedocs.io/en/latest/guides/performance.html) with the tree of states, too, walked once and not in
each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import optax
from flax import nnx
from numpy.typing import NDArray

from kit.backends.jax_compilations import CompilationCounter
from kit.backends.jax_layers import build_modules, dump_weights
from kit.backends.jax_optimizers import build_optimizer
from kit.backends.jax_threads import set_pool_threads
from kit.backends.protocol import Compilations, DeviceBatch, HostBatch, ThreadSetting
from kit.backends.support import require_supported
from kit.profile.cell import Cell
from kit.workloads.weights import Weights
from kit.workloads.workload import Workload

JaxBatch = tuple[jax.Array, jax.Array]
Leaves = list[jax.Array]


class JaxProgram:
    """A cell in JAX. See `kit.backends.protocol.Program`."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, seed: int) -> None:
        self._workload = workload
        self._device = jax.devices(cell.device)[0]
        self._batch_shape = (cell.batch, *workload.input_shape)
        self._host_feed = cell.feed == "host"
        self._train = cell.task == "train"
        self._optimizer = build_optimizer(workload.optimizer)
        with jax.default_device(self._device):
            model = build_modules(workload, weights, seed)
            model.train()
            self._graph, params, rest = nnx.split(model, nnx.Param, ...)
            model.eval()
            self._eval_graph, _ = nnx.split(model)
            optimizer_state = self._optimizer.init(params) if self._train else None
        leaves, self._tree = jax.tree.flatten((params, rest, optimizer_state))
        # Copies: what is donated may not share memory with anything that is still in use.
        self._leaves: Leaves = jax.device_put([_plain(leaf) for leaf in leaves], self._device, may_alias=False)
        self._jitted: Any = jax.jit(self._train_step, donate_argnums=0) if self._train else jax.jit(self._infer_step)
        self._execute = self._jitted
        self._traced: Any = None
        self._count_correct = jax.jit(self._correct)
        self._output: jax.Array | None = None
        jax.block_until_ready(self._leaves)
        self._counter = CompilationCounter()

    def put(self, batch: HostBatch) -> JaxBatch:
        """Copy one batch to the device."""
        resident: JaxBatch = jax.device_put((batch.inputs, batch.targets), self._device, may_alias=False)
        jax.block_until_ready(resident)
        return resident

    def trace(self) -> bool:
        """Trace to a jaxpr and lower it to StableHLO."""
        place = jax.sharding.SingleDeviceSharding(self._device)
        inputs = jax.ShapeDtypeStruct(self._batch_shape, np.float32, sharding=place)
        targets = jax.ShapeDtypeStruct(self._batch_shape[:1], np.int32, sharding=place)
        self._traced = self._jitted.trace(self._leaves, inputs, targets).lower()
        return True

    def compile(self) -> bool:
        """Compile what was traced; from here on `step` calls the executable, which cannot recompile."""
        if self._traced is None:
            self.trace()
        self._execute = self._traced.compile()
        return True

    def step(self, batch: DeviceBatch) -> jax.Array:
        """One optimizer update or one forward pass, dispatched and not waited for."""
        if self._host_feed:
            batch = jax.device_put((batch.inputs, batch.targets), self._device)
        if self._train:
            self._leaves, self._output = self._execute(self._leaves, *batch)
        else:
            self._output = self._execute(self._leaves, *batch)
        return self._output

    def synchronize(self) -> None:
        """Wait for the last step's output. The new state comes from the same executable and is ready with it."""
        if self._output is not None:
            self._output.block_until_ready()

    def to_host(self, output: jax.Array) -> NDArray[np.float32]:
        """Copy a loss or logits."""
        return np.array(output, np.float32)

    def evaluate(self, batches: Sequence[HostBatch]) -> int:
        """Count correct predictions with a function of its own, dropout off."""
        with self._counter.pause():
            return sum(int(self._count_correct(self._leaves, *self.put(batch))) for batch in batches)

    def weights(self) -> Weights:
        """Current weights, copied to the host."""
        params, rest, _ = jax.tree.unflatten(self._tree, self._leaves)
        return dump_weights(self._workload, nnx.merge(self._graph, params, rest))

    def compilations(self) -> Compilations:
        """Everything XLA has compiled in this process since the program was built, evaluation left out."""
        return Compilations(self._counter.count, None)

    def _train_step(self, leaves: Leaves, inputs: jax.Array, targets: jax.Array) -> tuple[Leaves, jax.Array]:
        params, rest, optimizer_state = jax.tree.unflatten(self._tree, leaves)
        model = nnx.merge(self._graph, params, rest)
        loss, grads = nnx.value_and_grad(_loss)(model, inputs, targets)
        updates, new_optimizer_state = self._optimizer.update(grads, optimizer_state, params)
        new_params = optax.apply_updates(params, updates)
        new_rest = nnx.state(model, nnx.Not(nnx.Param))  # dropout's counters have moved on
        return jax.tree.leaves((new_params, new_rest, new_optimizer_state)), loss

    def _infer_step(self, leaves: Leaves, inputs: jax.Array, _targets: jax.Array) -> jax.Array:
        params, rest, _ = jax.tree.unflatten(self._tree, leaves)
        return nnx.merge(self._eval_graph, params, rest)(inputs)

    def _correct(self, leaves: Leaves, inputs: jax.Array, targets: jax.Array) -> jax.Array:
        return (self._infer_step(leaves, inputs, targets).argmax(1) == targets).sum()


class JaxBackend:
    """JAX. See `kit.backends.protocol.Backend`."""

    name = "jax"

    @property
    def version(self) -> str:
        """Of JAX; Flax and optax have their own."""
        return str(jax.__version__)

    def set_threads(self, threads: int) -> ThreadSetting:
        """Size the CPU client's pool, which starts with it."""
        return set_pool_threads(threads)

    def devices(self) -> dict[str, int]:
        """Devices of each platform JAX has a plugin for."""
        return {kind: _count_devices(kind) for kind in ("cpu", "gpu", "tpu")}

    def build(self, workload: Workload, cell: Cell, weights: Weights, seed: int) -> JaxProgram:
        """Build the program. Raises BackendError where the cell cannot run here."""
        require_supported(cell, self.devices())
        jax.config.update("jax_enable_compilation_cache", False)  # a compile is a compile, whatever is on disk
        if cell.device != "cpu":
            # float32 is float32: no TensorFloat-32 on a GPU, no bfloat16 passes on a TPU.
            jax.config.update("jax_default_matmul_precision", "highest")
        return JaxProgram(workload, cell, weights, seed)


def create_backend() -> JaxBackend:
    """The backend, with JAX and Flax imported."""
    return JaxBackend()


def _loss(model: nnx.Sequential, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(model(inputs), targets).mean()


def _plain(leaf: jax.Array) -> jax.Array:
    """Dropout's keys as plain uint32 arrays: typed keys would take every call off JAX's fast dispatch path."""
    return jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def _count_devices(kind: str) -> int:
    try:
        return len(jax.local_devices(backend=kind))
    except RuntimeError:  # JAX's answer where it has no such platform
        return 0
