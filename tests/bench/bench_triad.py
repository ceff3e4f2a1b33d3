"""What a memory-bound neighbour on another CPU costs, which the rule of clean cycles cannot see.

    python tests/bench/bench_triad.py [--runs 4] [--rounds 4] [--backend torch,jax] [--workload mlp] [--task train]
    python tests/bench/bench_triad.py --from bench/triad       print what is there, measure nothing

Each of N times `kit run` measures the suite on one CPU, alone, then beside a program that is pinned to another one:

    loop     an empty loop: it needs no memory, and shows what another busy CPU costs by itself
    triad    a = b + s × c with three arrays of 64 MiB each, as in STREAM

Only CPUs that a cell may use count, so the rule leaves out no cycle for these programs. A profile that is in --folder
is not measured again, so an interrupted bench goes on.

    step             of the cell: geometric mean over runs, of the cycles that count
    ratio            of two frameworks' steps, with its 95 % interval over all rounds
    beside / alone   of runs with the same number: their geometric mean, with its 95 % interval over runs (two at least)
    others           mean share of the cell's CPU that others took in a block
    GB/s             of the triad: what its code reads and writes, without the lines that a write has to read first
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import time
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from itertools import chain, combinations
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from measuring import Interval, name_of, printed
from neighbours import TURNS, Children, measure, wall_path

from kit.compare.metrics import METRICS, value
from kit.compare.notes import read_run
from kit.compare.ratios import log_ratios
from kit.profile.store import read_profile
from kit.runner.worker_spec import usable_cpus
from kit.stats.estimate import over

ALONE, LOOP, TRIAD = "alone", "loop", "triad"
ARRAY_B = 64 << 20
SCALAR = 3.0
# Arrays that the two calls of a triad read and write.
ARRAYS_MOVED = 5
PROFILE_NAME = re.compile(rf"({ALONE}|{LOOP}|{TRIAD})-(\d+)\.json")
CPU_FILES = Path("/sys/devices/system/cpu")


class RunResult(NamedTuple):
    """What a run says, by the cycles that count."""

    steps: dict[str, float]  # cell -> log of its step
    ratios: dict[str, list[float]]  # pair of cells -> log-ratio of each round
    clean: int  # cycles
    ran: int
    others: float
    printed: str  # by what ran beside it


def be(kind, cpu):
    """Be the neighbour, until SIGTERM."""
    os.sched_setaffinity(0, {cpu})
    if kind == LOOP:
        while True:
            for _ in range(TURNS):
                pass
    a, b, c = (np.full(ARRAY_B // 8, value) for value in (0.0, 1.0, 2.0))
    begin_s, passes = time.monotonic(), 0
    try:
        while True:
            np.multiply(c, SCALAR, out=a)
            np.add(a, b, out=a)
            passes += 1
    finally:
        moved_gb = passes * ARRAYS_MOVED * ARRAY_B / 1e9
        print(f"{moved_gb / (time.monotonic() - begin_s):.1f}", flush=True)


def neighbour(kind, cpu):
    """Return what runs beside a run; None: nothing."""
    return None if kind == ALONE else Children([[sys.executable, __file__, "--be", kind, "--neighbour-cpu", str(cpu)]])


def read_result(path):
    """Return what a run says."""
    profile = read_profile(path)
    run = read_run("", profile)
    steps, ratios = {}, {}
    for group in run.groups:
        samples = list(group.samples.values())
        steps |= {name_of(of.cell): math.log(step_ns) for of in samples if (step_ns := value(of, "raw_step_ns"))}
        for sample, other in combinations(samples, 2):
            if logs := list(log_ratios(METRICS["step_ns"], sample, other).values()):
                ratios[f"{name_of(sample.cell)} ÷ {other.cell.backend}"] = logs
    rounds = [of_round for of_group in run.rounds.by_group.values() for of_round in of_group.values()]
    others = fmean(share for of_round in rounds for share in of_round.others.values())
    noted = json.loads(wall_path(path).read_text()) if wall_path(path).exists() else {}
    clean, ran = (sum(counts) for counts in zip(*((known.clean, known.ran) for known in rounds), strict=True))
    return RunResult(steps, ratios, clean, ran, others, " ".join(noted.get("printed", [])).strip())


def read_results(folder):
    """Return the runs of a folder: kind -> number -> result."""
    results = {ALONE: {}, LOOP: {}, TRIAD: {}}
    for path in folder.glob("*.json"):
        if match := PROFILE_NAME.fullmatch(path.name):
            results[match[1]][int(match[2])] = read_result(path)
    return {kind: of_kind for kind, of_kind in results.items() if of_kind}


def interval(logs):
    """Return the ratio with its interval; of one logarithm without."""
    known = over(logs)
    if not known.has_interval:
        return f"{math.exp(logs[0]):.4f}" if logs else "–"
    return Interval(known.ratio, *known.interval())


def both(results, kind, value):
    """Return `value` alone and beside, of each number for which both runs have it."""
    numbers = sorted(results[ALONE].keys() & results[kind].keys())
    known = [(value(results[ALONE][number]), value(results[kind][number])) for number in numbers]
    return [values for values in known if None not in values]


def print_steps(results):
    rows = [("cell", "beside", "runs", "step alone ms", "beside ms", "beside / alone [95 %]")]
    for name in dict.fromkeys(name for of_kind in results.values() for run in of_kind.values() for name in run.steps):
        for kind in [kind for kind in results if kind != ALONE]:
            logs = both(results, kind, lambda run, name=name: run.steps.get(name))
            if logs:
                steps_ms = [f"{math.exp(fmean(of_side)) / 1e6:.4f}" for of_side in zip(*logs, strict=True)]
                rows.append((name, kind, len(logs), *steps_ms, interval([beside - alone for alone, beside in logs])))
    printed(rows)


def print_ratios(results):
    rows = [("pair", "beside", "runs", "ratio alone [95 %]", "ratio beside [95 %]", "beside / alone [95 %]")]
    for name in dict.fromkeys(name for of_kind in results.values() for run in of_kind.values() for name in run.ratios):
        for kind in [kind for kind in results if kind != ALONE]:
            logs = both(results, kind, lambda run, name=name: run.ratios.get(name))
            if logs:
                sides = [interval(list(chain(*of_side))) for of_side in zip(*logs, strict=True)]
                changes = [fmean(beside) - fmean(alone) for alone, beside in logs]
                rows.append((name, kind, len(logs), *sides, interval(changes)))
    printed(rows)


def print_cycles(results):
    rows = [("beside", "runs", "cycles that count", "others", "GB/s")]
    for kind, of_kind in results.items():
        runs = of_kind.values()
        cycles = f"{sum(run.clean for run in runs)} of {sum(run.ran for run in runs)}"
        rates = [float(run.printed) for run in runs if run.printed]
        rate = f"{fmean(rates):.1f}" if rates else "–"
        rows.append((kind, len(runs), cycles, f"{100 * fmean(run.others for run in runs):.1f} %", rate))
    printed(rows)


def print_place(cpu, neighbour_cpu):
    """Print what the two CPUs share, as far as this machine says it."""
    files = {"core": "topology/thread_siblings_list", "last-level cache": "cache/index3/shared_cpu_list"}
    for what, name in files.items():
        file = CPU_FILES / f"cpu{cpu}" / name
        shared = file.read_text().strip() if file.exists() else "not shown here"
        print(f"CPU {cpu} is measured, CPU {neighbour_cpu} is beside it; CPUs of the same {what}: {shared}")


def options():
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4, help="of each kind (default: 4)")
    parser.add_argument("--kinds", default=f"{LOOP},{TRIAD}", help=f"of neighbours (default: {LOOP},{TRIAD})")
    parser.add_argument("--suite", default="quick")
    for name in ("rounds", "backend", "workload", "task"):
        parser.add_argument(f"--{name}", help="as of `kit run`")
    parser.add_argument("--data", default="synthetic")
    parser.add_argument("--cpu", type=int, help="that is measured (default: the first that may be used)")
    parser.add_argument("--neighbour-cpu", type=int, help="of the neighbour (default: the last that may be used)")
    parser.add_argument("--folder", type=Path, default=Path("bench/triad"))
    parser.add_argument("--from", dest="judged", type=Path, metavar="FOLDER", help="print what this folder has")
    parser.add_argument("--be", choices=(LOOP, TRIAD), help=SUPPRESS)
    arguments = parser.parse_args()
    if unknown := set(arguments.kinds.split(",")) - {LOOP, TRIAD}:
        parser.error(f"--kinds: no {', '.join(sorted(unknown))}; choose from {LOOP}, {TRIAD}")
    cpus = usable_cpus()
    arguments.cpu = cpus[0] if arguments.cpu is None else arguments.cpu
    arguments.neighbour_cpu = cpus[-1] if arguments.neighbour_cpu is None else arguments.neighbour_cpu
    if arguments.judged is None and arguments.cpu == arguments.neighbour_cpu:
        parser.error("two CPUs are needed: one is measured, the other has the neighbour")
    return arguments


def measure_all(arguments):
    """Measure the runs that are not in the folder."""
    words = [arguments.suite, "--data", arguments.data, "--threads", "1"]
    for name in ("rounds", "backend", "workload", "task"):
        if getattr(arguments, name) is not None:
            words += [f"--{name}", getattr(arguments, name)]
    for number in range(arguments.runs):
        for kind in (ALONE, *arguments.kinds.split(",")):
            path = arguments.folder / f"{kind}-{number}.json"
            measure(path, words, neighbour(kind, arguments.neighbour_cpu), {arguments.cpu})


def main():
    arguments = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments.be is not None:
        be(arguments.be, arguments.neighbour_cpu)
    if arguments.judged is None:
        measure_all(arguments)
        print_place(arguments.cpu, arguments.neighbour_cpu)
    results = read_results(arguments.judged or arguments.folder)
    if ALONE not in results:
        sys.exit("no run alone is there to compare with")
    for table in (print_steps, print_ratios, print_cycles):
        print()
        table(results)


if __name__ == "__main__":
    main()
