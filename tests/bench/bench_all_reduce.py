"""The all-reduce alone: prints how long each framework's own takes for a network's gradients over two devices.

    python tests/bench/bench_all_reduce.py [--backend torch] [--workload cnn] [--times 200]

Beside it stands the column *all-reduce* of `kit run scaling`: what of a step is gone without it. Each device has its
half of the CPUs, as a rank of the kit has; JAX has both in one process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

from kit.backends.backend_catalog import load
from kit.backends.entry import THREAD_VARIABLES
from kit.backends.protocol import RankGroup
from kit.runner.worker_spec import usable_cpus
from kit.worker.private_network import LOOPBACK
from kit.worker.rank_place import address_of, held_port
from kit.workloads.seeded_arrays import initial_weights
from kit.workloads.workload_catalog import workload as workload_of

DEVICES = 2
WARMUP = 20
# A rank that ends in the last all-reduce of the others fails them.
LINGER_S = 2.0


def reduced_by_torch(shapes):
    import torch

    flat = torch.ones(sum(map(_size, shapes)))  # as one bucket of DistributedDataParallel

    def once():
        torch.distributed.all_reduce(flat)

    return once


def reduced_by_tensorflow(shapes, backend):
    import tensorflow as tf

    workers, gradients = backend._workers, [tf.ones(shape) for shape in shapes]

    @tf.function
    def average(given):
        with tf.device("CPU:0"):
            return workers.averaged([tf.identity(gradient) for gradient in given])

    def once():
        average(gradients)[0].numpy()

    return once


def reduced_by_jax(shapes):
    import jax
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec

    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")), ("batch",))
    part, whole = PartitionSpec("batch"), PartitionSpec()
    given = [jax.device_put(np.ones((DEVICES, *shape), np.float32), NamedSharding(mesh, part)) for shape in shapes]
    total = jax.jit(
        jax.shard_map(
            lambda arrays: [jax.lax.psum(array, "batch") for array in arrays], mesh=mesh, in_specs=part, out_specs=whole
        )
    )

    def once():
        jax.block_until_ready(total(given))

    return once


def _size(shape):
    size = 1
    for length in shape:
        size *= length
    return size


def measured_ms(arguments, number, addresses):
    """Return the milliseconds of each all-reduce."""
    backend, workload = load(arguments.backend), workload_of(arguments.workload, {})
    backend.join(RankGroup(number, addresses), "cpu", DEVICES // len(addresses))
    backend.set_threads(max(1, len(usable_cpus())))
    shapes = [array.shape for array in initial_weights(workload, 0).values()]
    once = {
        "torch": lambda: reduced_by_torch(shapes),
        "tensorflow": lambda: reduced_by_tensorflow(shapes, backend),
        "jax": lambda: reduced_by_jax(shapes),
    }[arguments.backend]()
    times_ms = []
    for _ in range(WARMUP + arguments.times):
        begin_ns = time.perf_counter_ns()
        once()
        times_ms.append((time.perf_counter_ns() - begin_ns) / 1e6)
    return times_ms[WARMUP:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["torch", "tensorflow", "jax"], default="torch")
    parser.add_argument("--workload", default="cnn")
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--addresses", default="")
    arguments = parser.parse_args()
    cpus, ranks = usable_cpus(), 1 if arguments.backend == "jax" else DEVICES
    if arguments.rank is not None:
        times_ms = measured_ms(arguments, arguments.rank, tuple(arguments.addresses.split(",")))
        low, middle, high = statistics.quantiles(times_ms, n=4)
        if arguments.rank == 0:
            print(
                f"{arguments.backend} {arguments.workload}: {middle:.2f} ms, quartiles {low:.2f} to {high:.2f}",
                flush=True,
            )
        time.sleep(LINGER_S)
        os._exit(0)
    ports = [held_port(LOOPBACK) for _ in range(ranks)]
    addresses = ",".join(map(address_of, ports))
    for port in ports:
        port.close()
    started = []
    for rank in range(ranks):
        part = cpus[rank * len(cpus) // ranks : (rank + 1) * len(cpus) // ranks]
        pinned = ["taskset", "-c", ",".join(map(str, part))]
        command = [*pinned, sys.executable, *sys.argv, "--rank", str(rank), "--addresses", addresses]
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(len(part)))
        started.append(subprocess.Popen(command, env=environment))
    return max(process.wait() for process in started)


if __name__ == "__main__":
    sys.exit(main())
