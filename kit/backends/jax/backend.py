"""JAX: its devices, threads, ranks and memory, and which program a cell gets."""

from __future__ import annotations

import functools
import os
from contextlib import suppress

import jax

from kit.backends.entry import BackendError, keeps_defaults, keeps_precision
from kit.backends.jax import proof
from kit.backends.jax.about import ENTRY
from kit.backends.jax.answers import JaxDecoding, JaxPrefill
from kit.backends.jax.program import MEMORY_FRACTION, JaxProgram, Mesh
from kit.backends.protocol import HEARTBEAT_S, RankGroup, ThreadSetting
from kit.environment import COMPILE_CACHE
from kit.profile.cell import Cell
from kit.profile.fields import reason
from kit.sensors.linux import XLA_POOL, threads_named
from kit.workloads.seeded_arrays import Weights
from kit.workloads.workload import Workload

OWN_PRECISION = jax.config.jax_default_matmul_precision
# Ranks wait so long for the last to join.
JOIN_LIMIT_S = 120


class JaxBackend:
    """JAX. See `kit.backends.protocol.Backend`."""

    name = ENTRY.name
    version = jax.__version__
    _joined: tuple[RankGroup | None, int] = None, 1

    def set_threads(self, threads: int | None) -> ThreadSetting:
        """Set the size of the CPU client's pool and start it; reports the pool's threads as the kernel lists them.

        JAX has no call for this. XLA's CPU client reads a variable once, when it starts. Without the variable it takes
        the CPUs that the process may run on (`DefaultThreadPoolSize` in xla/pjrt/utils.cc).
        """
        if threads is not None:
            os.environ["NPROC"] = str(threads)
        jax.devices("cpu")
        counted = threads_named(XLA_POOL)
        return ThreadSetting(counted or None, None if counted else reason("pool_threads_not_listed"))

    def join(self, ranks: RankGroup, kind: str, devices: int) -> None:
        """Give this process its devices, and connect it to the other ranks."""
        self._joined = ranks, devices
        join(ranks, kind, devices)

    def count(self, kind: str) -> int:
        """Count the devices of a platform; 0 without a plugin for it."""
        with suppress(RuntimeError):  # JAX raises it for a platform that it does not have
            return len(jax.local_devices(backend=kind))
        return 0

    def share_gpu_memory(self, fraction: float) -> None:
        """Limit the GPU memory that XLA takes, unless the user has set a limit."""
        if not keeps_defaults() and not any(os.environ.get(name) for name in MEMORY_FRACTION):
            os.environ[MEMORY_FRACTION[0]] = f"{fraction:.3f}"

    def peak_memory_b(self, device: str) -> int | None:
        """Return the most that the device's allocator held; None if it keeps no statistics."""
        stats = jax.local_devices(backend=device)[0].memory_stats()
        return None if stats is None else stats.get("peak_bytes_in_use")

    def build(self, workload: Workload, cell: Cell, weights: Weights, seed: int) -> JaxProgram:
        """Build the program."""
        if (switch := proof.switched_off()) is not None:
            raise BackendError(f"{switch.values['by']} switches jax.jit off, and nothing can be compiled; unset it")
        # Nothing compiled earlier is reused, but where the run says so.
        jax.config.update("jax_enable_compilation_cache", bool(os.environ.get(COMPILE_CACHE)))
        set_precision(cell)
        mesh = Mesh(cell.device, *self._joined)
        answers = JaxDecoding if cell.task == "decode" else JaxPrefill
        program = answers if workload.takes_tokens and not cell.traits.trains else JaxProgram
        return program(workload, cell, weights, seed, mesh)


def set_precision(cell: Cell) -> None:
    """Set what an accelerator computes float32 products in: float32 (on a TPU in six passes) or TensorFloat-32."""
    if cell.device != "cpu":
        precision = "tensorfloat32" if cell.precision == "tf32" else "highest"
        jax.config.update("jax_default_matmul_precision", OWN_PRECISION if keeps_precision(cell) else precision)


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
            heartbeat_timeout_seconds=HEARTBEAT_S,
            coordinator_bind_address=ranks.addresses[0],
        )
        # JAX has no setting for the interface: its CPU client calls this function without one (jax-ml/jax,
        # `make_cpu_client` in xla_bridge.py).
        try:
            from jax._src.lib import _jax

            make = functools.partial(_jax.make_gloo_tcp_collectives, interface=ranks.interface())
        except (ImportError, AttributeError) as error:
            message = f"JAX {jax.__version__} does not let Steadykit choose where its ranks listen ({error})"
            raise BackendError(f"{message}; use JAX 0.9 to 0.12, or leave --devices out") from error
        _jax.make_gloo_tcp_collectives = make


BACKEND = JaxBackend()
