"""Operations in JAX: they are compiled ahead of time, and an array that is updated in place is donated."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from kit.backends.jax.about import ENTRY
from kit.backends.jax.backend import set_precision
from kit.backends.jax.program import JaxProgram, Mesh, computed_in
from kit.backends.protocol import DeviceBatch, Program
from kit.profile.cell import Cell
from kit.workloads.device_operations import TRIAD_SCALE, square
from kit.workloads.seeded_arrays import operation_values


class JaxOperation(JaxProgram):
    """An operation; its step returns an array on the device."""

    trace, compile = Program.trace, Program.compile  # it was compiled when it was built

    def __init__(self, cell: Cell) -> None:
        self._mesh = Mesh(cell.device)
        self._device = self._mesh.device
        self._on_cpu, self._on_gpu = cell.device == "cpu", cell.device == "gpu"
        self._call = self._made(cell)

    def _made(self, cell: Cell) -> Callable[[], jax.Array]:
        match cell.workload:
            case "matmul":
                generator, dtype = np.random.default_rng(0), computed_in(cell.precision)
                a, b = (self._put(generator.random(square(cell), np.float32).astype(dtype)) for _ in range(2))
                product = self._compiled(jnp.matmul, a, b)
                return lambda: product(a, b)
            case "triad":
                self._output, b = (self._put(operation_values(cell)) for _ in range(2))
                # A donated array may not be used again, so the first argument is the last step's output.
                add = self._compiled(lambda a, b: a + TRIAD_SCALE * b, self._output, b, donated=(0,))
                return lambda: add(self._output, b)
            case "copy_in":
                host = operation_values(cell)
                return lambda: jax.device_put(host, self._device, may_alias=False)
            case "copy_out":
                there, host = self._put(operation_values(cell)), operation_values(cell)
                is_host = self._device.platform == "cpu"

                def copy_out() -> jax.Array:
                    # An array caches its copy on the host. This one is new and shares the device's memory.
                    fresh = jax.make_array_from_single_device_arrays(there.shape, there.sharding, [there])
                    array = np.asarray(fresh)
                    if is_host:  # the array is a view
                        np.copyto(host, array)
                    return there

                return copy_out
            case "empty":
                x = self._put(np.zeros((), np.float32))
                add = self._compiled(lambda x: x + x, x)
                return lambda: add(x)
            case _:
                raise ENTRY.untranslated(cell)

    def step(self, _batch: DeviceBatch) -> jax.Array:
        """Run the operation once."""
        self._output = self._call()
        return self._output

    def _put(self, array: np.ndarray) -> jax.Array:
        return jax.device_put(array, self._device, may_alias=False)

    def _compiled(
        self, function: Callable[..., jax.Array], *arrays: jax.Array, donated: tuple[int, ...] = ()
    ) -> Callable[..., jax.Array]:
        self._executable = jax.jit(function, donate_argnums=donated).lower(*arrays).compile()
        compiled: Callable[..., jax.Array] = self._executable
        return compiled


def build(cell: Cell) -> JaxOperation:
    """Return the operation that a cell names."""
    set_precision(cell)
    return JaxOperation(cell)
