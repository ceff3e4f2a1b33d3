"""Is our step as fast as the framework's own recommended loop? Prints ours / recommended; the goal is at most 1.

    python tests/bench/bench_recommended_loop.py [--backend torch] [--workload mlp] [--task train] [--blocks 20]

Each case in a process of its own. Blocks of our `step` + `synchronize` alternate with blocks of the loop as the
framework's documentation writes it (tests/bench/recommended/): same workload, same batches, each side's resident in its
own way, same wait after each step; the order within a pair of blocks alternates too. A ratio is taken pair by pair, so
that drift of the machine falls out; the median over the pairs is the answer, the smallest and largest stand beside it.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from itertools import cycle, islice

from child_process import ChildError, answer, case_parser, chosen_cases, measure_in_child

BATCH = 128
THREADS = 2
BLOCK_S = 0.5
WARMUP_S = 2.0


def timed_block(step, wait, batches, steps):
    """Median seconds of a step."""
    found = []
    for batch in islice(batches, steps):
        begin = time.perf_counter_ns()
        output = step(batch)
        wait(output)
        found.append(time.perf_counter_ns() - begin)
    return statistics.median(found) / 1e9


def measure(workload_name, task, backend_name, blocks):
    """Ratios of every recommended loop of one framework, in this process."""
    from kit.backends.catalog import CATALOG
    from kit.backends.load import load
    from kit.profile.cell import Cell
    from kit.workloads.catalog import WORKLOADS
    from kit.workloads.data import dataset
    from kit.workloads.data.batches import batch_pool
    from kit.workloads.weights import initial_weights

    begin = time.perf_counter()
    backend = load(backend_name)
    phases = {"import": time.perf_counter() - begin}
    backend.set_threads(THREADS)
    workload = WORKLOADS[workload_name]
    data = dataset.load("auto", splits=("train",))
    pool = batch_pool(workload, data.train_images, data.train_labels, BATCH, 20, 0)
    cell = Cell(
        workload=workload_name,
        backend=backend_name,
        device="cpu",
        task=task,
        batch=BATCH,
        precision="float32",
        compile_mode=CATALOG[backend_name].compile_modes[0],
        feed="device",
    )
    begin = time.perf_counter()
    program = backend.build(workload, cell, initial_weights(workload, 0), 0)
    phases["build"] = time.perf_counter() - begin
    for phase in ("trace", "compile"):
        begin = time.perf_counter()
        getattr(program, phase)()
        phases[phase] = time.perf_counter() - begin
    resident = [program.put(batch) for batch in pool]
    begin = time.perf_counter()
    program.step(resident[0])
    program.synchronize()
    phases["first_step"] = time.perf_counter() - begin

    recommended = importlib.import_module(f"recommended.{backend_name}_loops")
    answers = {}
    for name, loop in recommended.loops(workload_name, task).items():
        sides = {
            "ours": (program.step, lambda _output: program.synchronize(), cycle(resident)),
            "recommended": (loop.step, loop.wait, cycle([recommended.put(*batch) for batch in pool])),
        }
        for step, wait, batches in sides.values():
            end = time.perf_counter() + WARMUP_S
            pace = timed_block(step, wait, batches, 3)
            while time.perf_counter() < end:
                pace = timed_block(step, wait, batches, 3)
        steps = max(3, round(BLOCK_S / pace))
        pairs = []
        for block in range(blocks):
            order = list(sides) if block % 2 else list(sides)[::-1]
            pairs.append({side: timed_block(*sides[side], steps) for side in order})
        answers[name] = {
            "ratios": [pair["ours"] / pair["recommended"] for pair in pairs],
            "ours_ms": min(pair["ours"] for pair in pairs) * 1e3,
            "recommended_ms": min(pair["recommended"] for pair in pairs) * 1e3,
        }
    return {"loops": answers, "phases": phases}


def main():
    parser = case_parser(__doc__)
    parser.add_argument("--blocks", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.child:
        answer(measure(*arguments.child, arguments.blocks))
        return
    print(f"step + wait, ours / recommended, batch {BATCH}, {THREADS} threads, {arguments.blocks} pairs of blocks")
    print(
        f"{'workload':<9}{'task':<7}{'backend':<12}{'loop':<26}{'median':>8}{'min':>8}{'max':>8}"
        f"{'ours ms':>10}{'theirs ms':>11}  phases in s"
    )
    for case in chosen_cases(arguments):
        try:
            result = measure_in_child(case)
        except ChildError as failed:
            sys.exit(f"{case.backend} {case.workload} {case.task} failed:\n{failed}")
        phases = " ".join(f"{name} {seconds:.2f}" for name, seconds in result["phases"].items())
        for name, loop in result["loops"].items():
            ratios = loop["ratios"]
            print(
                f"{case.workload:<9}{case.task:<7}{case.backend:<12}{name:<26}{statistics.median(ratios):>8.3f}"
                f"{min(ratios):>8.3f}{max(ratios):>8.3f}{loop['ours_ms']:>10.3f}"
                f"{loop['recommended_ms']:>11.3f}  {phases}",
                flush=True,
            )


if __name__ == "__main__":
    main()
