"""Does the kit's steady step agree with a bare loop in the framework? Prints ratios, target within 1 %.

    python tests/bench/bench_bare_loop.py [--workload mlp] [--blocks 12]

In one process a framework, blocks alternate: the kit's own step loop with its sampler running, and a bare loop, its
steps timed by `time.perf_counter_ns`, with the sampler stopped (SIGSTOP). Same program, same batches, same run; the
ratio is taken block by block, so that drift of the machine falls out. What the kit adds to a step (stamps, sampler) is
the difference; whether the step itself is the framework's best is shown by bench_recommended_loop.py.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from itertools import cycle, islice

BACKENDS = ("tensorflow", "torch", "jax")
BATCH = 128
WARMUP_S = 2.0
BLOCK_S = 1.0


def bare_loop(program, batches, steps):
    """Median nanoseconds a step, as anyone would time it."""
    step_ns = []
    for batch in islice(batches, steps):
        begin = time.perf_counter_ns()
        program.step(batch)
        program.synchronize()
        step_ns.append(time.perf_counter_ns() - begin)
    return statistics.median(step_ns)


def ratios(backend_name, workload_name, task, blocks):
    """Kit over bare, block by block, in this process."""
    import numpy as np

    from kit import clock
    from kit.backends.load import load as load_backend
    from kit.suites.plan import plan_cells
    from kit.suites.suite import Axes
    from kit.worker.affinity import pin
    from kit.worker.sampler_process import SamplerProcess
    from kit.worker.step_loop import run_steps
    from kit.workloads.catalog import WORKLOADS
    from kit.workloads.data import dataset as datasets
    from kit.workloads.data.batches import POOL_BATCHES, batch_pool
    from kit.workloads.weights import initial_weights

    cpus = sorted(os.sched_getaffinity(0))
    pin(cpus)
    workload = WORKLOADS[workload_name]
    axes = Axes(workloads=[workload_name], backends=[backend_name], tasks=[task], batches=[BATCH])
    cell = plan_cells(axes)[0]
    backend = load_backend(backend_name)
    backend.set_threads(len(cpus))
    data = datasets.load("auto", splits=("train",))
    pool = batch_pool(workload, data.train_images, data.train_labels, BATCH, POOL_BATCHES, 0)
    program = backend.build(workload, cell, initial_weights(workload, 0), 0)
    batches = cycle([program.put(batch) for batch in pool])
    program.trace()
    program.compile()

    end = time.perf_counter() + WARMUP_S
    while time.perf_counter() < end:
        pace_ns = bare_loop(program, batches, 5)
    steps = max(10, round(BLOCK_S * 1e9 / pace_ns))
    found = []
    with SamplerProcess() as sampler:
        for _ in range(blocks):
            stamps = clock.stamps(steps + 1)
            kit_ns = float(np.median(run_steps(program, batches, steps, stamps, None).step_ns))
            os.kill(sampler.pid, signal.SIGSTOP)
            bare_ns = bare_loop(program, batches, steps)
            os.kill(sampler.pid, signal.SIGCONT)
            found.append(kit_ns / bare_ns)
    return {"ratios": found, "steps": steps, "step_ms": pace_ns / 1e6}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=BACKENDS, action="append")
    parser.add_argument("--workload", choices=("mlp", "cnn"), action="append")
    parser.add_argument("--task", choices=("train", "infer"), action="append")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--child", nargs=3)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(ratios(*arguments.child, arguments.blocks)))
        return
    print(f"steady step: kit / bare loop, batch {BATCH}, {arguments.blocks} alternating blocks of {BLOCK_S:g} s a side")
    print(f"{'workload':<9}{'task':<7}{'backend':<12}{'ratio':>8}{'lowest':>9}{'highest':>9}{'steps a block':>15}")
    for workload in arguments.workload or ("mlp", "cnn"):
        for task in arguments.task or ("train", "infer"):
            for backend in arguments.backend or BACKENDS:
                child = ["--blocks", str(arguments.blocks), "--child", backend, workload, task]
                answer = subprocess.run([sys.executable, __file__, *child], capture_output=True, text=True, check=False)
                if answer.returncode:
                    print(f"{workload:<9}{task:<7}{backend:<12} failed: {answer.stderr.strip().splitlines()[-1]}")
                    continue
                result = json.loads(answer.stdout.splitlines()[-1])
                found = result["ratios"]
                print(
                    f"{workload:<9}{task:<7}{backend:<12}{statistics.median(found):>8.4f}{min(found):>9.4f}"
                    f"{max(found):>9.4f}{result['steps']:>15}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
