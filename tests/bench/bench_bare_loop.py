"""Does the kit's steady step agree with a bare loop in the framework? Prints ratios, target within 1 %.

    python tests/bench/bench_bare_loop.py [--backend torch] [--workload mlp] [--task train] [--seconds 8]

In one process a case, groups of five steps alternate: the kit's own step loop, and a bare loop, its steps timed by
`time.perf_counter_ns`. Same program, same batches, same run; the order within a pair alternates, too. The ratio is
taken pair by pair, so that what the machine does for longer than ten steps falls out; it is the median over the pairs,
with its 95 % interval. The sampler runs beside both: what it costs is bench_sampler.py's question, and whether the step
itself is the framework's best is bench_recommended_loop.py's.

How long a case takes depends on its step: pairs are added until there are 200 or 60 s have passed, whichever comes
first, but for `--seconds` at least.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from itertools import cycle, islice

from child_process import ChildError, answer, case_parser, chosen_cases, measure_in_child

BATCH = 128
WARMUP_S = 2.0
GROUP_STEPS = 5
# The interval narrows with the root of the pairs: 16, as 8 s give a step of 50 ms, leave several percent open.
PAIRS_ENOUGH = 200
# A step of 250 ms would take eight minutes to give that many. It gets some 24 pairs, and its interval says how little
# they resolve; a larger `--seconds` gives it more.
SECONDS_MAX = 60.0


def bare_loop(program, batches, steps):
    """Median nanoseconds a step, as anyone would time it."""
    step_ns = []
    for batch in islice(batches, steps):
        begin = time.perf_counter_ns()
        output = program.step(batch)  # noqa: F841 - kept until the next one is there, as a loop that uses it would
        program.synchronize()
        step_ns.append(time.perf_counter_ns() - begin)
    return statistics.median(step_ns)


def enough(pairs, passed_s, seconds):
    """Whether a case has been measured for long enough: its pairs so far, and for how many seconds at least."""
    return passed_s >= seconds and (pairs >= PAIRS_ENOUGH or passed_s >= SECONDS_MAX)


def ratios(workload_name, task, backend_name, seconds):
    """Kit over bare, pair by pair, in this process."""
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

    def kit_group():
        return float(np.median(run_steps(program, batches, GROUP_STEPS, clock.stamps(GROUP_STEPS + 1), None).step_ns))

    def bare_group():
        return bare_loop(program, batches, GROUP_STEPS)

    end = time.perf_counter() + WARMUP_S
    while time.perf_counter() < end:
        bare_group()
    found = []
    with SamplerProcess():
        begin = time.perf_counter()
        while not enough(len(found), time.perf_counter() - begin, seconds):
            if len(found) % 2:
                bare_ns, kit_ns = bare_group(), kit_group()
            else:
                kit_ns, bare_ns = kit_group(), bare_group()
            found.append(kit_ns / bare_ns)
    return found


def median_interval(values):
    """Median with its 95 % interval, by order statistics (binomial, normal approximation)."""
    ordered, n = sorted(values), len(values)
    reach = 0.98 * math.sqrt(n)
    low, high = math.floor(n / 2 - reach), math.ceil(n / 2 + reach)
    return statistics.median(ordered), ordered[max(low, 0)], ordered[min(high, n - 1)]


def main():
    parser = case_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=8)
    arguments = parser.parse_args()
    if arguments.child:
        answer(ratios(*arguments.child, arguments.seconds))
        return
    print(f"steady step: kit / bare loop, batch {BATCH}, pairs of {GROUP_STEPS} steps a side")
    print(f"{'workload':<9}{'task':<7}{'backend':<12}{'ratio':>8}  95 % interval{'pairs':>9}")
    for case in chosen_cases(arguments):
        name = f"{case.workload:<9}{case.task:<7}{case.backend:<12}"
        try:
            found = measure_in_child(case)
        except ChildError as failed:
            print(f"{name} failed: {str(failed).splitlines()[-1]}")
            continue
        ratio, low, high = median_interval(found)
        print(f"{name}{ratio:>8.4f}  {low:.4f}–{high:.4f}{len(found):>9}", flush=True)


if __name__ == "__main__":
    main()
