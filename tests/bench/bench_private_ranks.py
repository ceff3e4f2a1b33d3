"""Step time of two ranks in a network of their own over that of another checkout; the goal is an interval that holds 1.

    python tests/bench/bench_private_ranks.py --old ../old [--backend torch] [--rounds 8] [--pairs 8]

`--old` is a checkout of the code before (8e0dbbc), built in place: its ranks are in the machine's network. Its own
kit starts and asks its ranks, by this Python. In a round both start afresh, in a drawn order, and their blocks take
turns, the others stopped. A round gives the logarithm of the ratio of the median blocks; the interval over rounds is
Student's. Eight rounds of three frameworks take about six minutes on a quiet machine of two CPUs.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
from measuring import Interval, printed
from msgspec.structs import replace

from kit.environment import PROCESS_EACH
from kit.profile.cell import Cell, Variant
from kit.profile.schema import Group
from kit.runner.interrupt import StopFlag
from kit.runner.round_worker import RoundWorker
from kit.runner.worker_processes import Ranks
from kit.runner.worker_spec import WorkerSpec, usable_cpus
from kit.stats.estimate import t_quantile
from kit.suites.groups import WorkerPlan
from kit.suites.suite import MeasureTable
from kit.worker.messages import Join, Prepare

ROOT = Path(__file__).parents[2]
MODES = {"torch": "eager", "jax": "jit", "tensorflow": "graph"}
RANKS, BATCH, BLOCK_S, WARMUP_S = 2, 128, 0.2, 1.0
LEVEL = 0.95


def hold(backend):
    """Hold two ranks; print the nanoseconds of a step for each line of input."""
    cell = Cell(
        workload="mlp", backend=backend, device="cpu", task="train", batch=BATCH, precision="float32",
        compile_mode=MODES[backend], feed="device", devices=RANKS,
    )  # fmt: skip
    prepare = Prepare(
        backend=backend, device="cpu", clock="monotonic_raw", cpus=usable_cpus()[:RANKS], parts=RANKS, devices=RANKS
    )
    spec = WorkerSpec(
        cells=[cell], variant=Variant(name="default"), prepare=prepare, join=Join(devices=1, threads=1), ranks=RANKS,
        data={"mnist": "synthetic"},
    )  # fmt: skip
    group = Group(key="bench", cells=[cell.key], baseline=cell.key)
    steps = replace(MeasureTable().plan(), warmup_s=WARMUP_S)
    worker = RoundWorker(WorkerPlan("bench", [cell]), spec, Ranks(spec, StopFlag()), steps, [group], 0)
    try:
        worker.prepare()
        networks = {network_of(process.pid) for process in psutil.Process().children(recursive=True)}
        print("machine" if networks == {network_of("self")} else "private", flush=True)
        worker.build(cell.key, "bench")
        worker.warm_up(cell.key, "bench")
        for _ in sys.stdin:
            worker.take_turn(cell.key, BLOCK_S)
            ran = worker.end_block(cell.key, 0)
            assert ran is not None, worker.launches
            blocks, _ = ran
            print(blocks.duration_ns[0] / blocks.steps[0], flush=True)
    finally:
        worker.end()


def network_of(pid):
    """Return the network namespace of a process."""
    return Path(f"/proc/{pid}/ns/net").readlink()


@contextmanager
def held(checkout, backend, network):
    """Start ranks by a checkout's kit; give what runs a block and returns the nanoseconds of its steps."""
    # A process's own folder of imports has this file's neighbors; the kit is the checkout's.
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve()), PROCESS_EACH: "1"}
    command = [sys.executable, __file__, "--hold", backend]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as ranks:

        def block_ns():
            ranks.stdin.write("\n")
            ranks.stdin.flush()
            return float(ranks.stdout.readline())

        line = ranks.stdout.readline().strip()
        assert line == network, f"the ranks of {checkout} are in the network: {line}; wanted: {network}"
        yield block_ns
        ranks.stdin.close()


def log_ratio(draw, backend, old, pairs):
    """Return ln(in a network of their own / before) of a round."""
    places, times_ns = draw.sample(["new", "old"], 2), {"new": [], "old": []}
    with ExitStack() as stack:
        block_ns = {}
        for place in places:
            checkout, network = (ROOT, "private") if place == "new" else (old, "machine")
            block_ns[place] = stack.enter_context(held(checkout, backend, network))
            block_ns[place]()  # started and warm before the other starts; not counted
        for _ in range(pairs):
            for place in draw.sample(places, 2):
                times_ns[place].append(block_ns[place]())
    return math.log(statistics.median(times_ns["new"]) / statistics.median(times_ns["old"]))


def ratio_of(logs):
    """Return the ratio with its interval over rounds."""
    mean, half = statistics.fmean(logs), math.inf
    if len(logs) > 1:
        half = t_quantile(len(logs) - 1, 0.5 + LEVEL / 2) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(min(mean + half, 1.0)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, help="the checkout before, built in place")
    parser.add_argument("--backend", choices=list(MODES), action="append")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=8, help="of blocks in a round")
    parser.add_argument("--hold", choices=list(MODES), help="hold ranks for this program's own use")
    arguments = parser.parse_args()
    if arguments.hold:
        hold(arguments.hold)
        return
    if arguments.old is None or not (arguments.old / "kit").is_dir():
        parser.error("--old: give the folder of a checkout that has a folder kit")
    draw, rows = random.Random(0), [("own network / before", "ratio [95 %]", "rounds")]
    for backend in arguments.backend or MODES:
        logs = []
        for _ in range(arguments.rounds):
            logs.append(log_ratio(draw, backend, arguments.old, arguments.pairs))
            print(backend, ratio_of(logs), f"after {len(logs)} rounds", file=sys.stderr)
        rows.append((f"{backend} mlp train, {RANKS} ranks", ratio_of(logs), len(logs)))
    printed(rows)


if __name__ == "__main__":
    main()
