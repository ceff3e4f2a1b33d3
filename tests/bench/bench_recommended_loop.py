"""Ours over the framework's own recommended loop: prints the ratio of each cell with its 95 % interval over rounds.

    python tests/bench/bench_recommended_loop.py [--backend torch] [--workload lstm] [--task train] [--out FILE]
    python tests/bench/bench_recommended_loop.py --from bench/torch.json --from bench/jax.json    judge, measure nothing

Without options: ten networks (two of them small: `recommended/sizes.py`), three frameworks, train and infer, 60 cells;
8 rounds of 12 cycles take about two and a half hours on two CPUs. Train and infer share a process. The profile stays;
an interrupted run goes on with the same --out, and pieces of their own --out are counted together by --from.

Both are members of one round of the kit: fresh processes, blocks in turns, each pair within its cycle. A recommended
loop (`recommended/`) is a variant whose interpreter is a script that runs `recommended_worker.py` in place of the kit's
worker. JAX has two loops, and so three members. The goal is an upper end of at most 1.05 in every cell, and a ratio of
at most 1 in three quarters of them. The data are synthetic: a recommended loop scores no test split.
"""

from __future__ import annotations

import math
import os
import shlex
import statistics
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
from measuring import Interval, case_parser, chosen_cells, name_of, printed, run_rounds
from recommended.sizes import PARAMETERS

from kit.compare.metrics import METRICS
from kit.compare.ratios import log_ratios
from kit.compare.runs import run_of
from kit.profile.cell import Variant
from kit.profile.store import read_profile
from kit.runner.target import interpreter_for
from kit.stats.estimate import over

NETWORKS = [
    "mlp", "cnn", "cnn_small", "rnn", "lstm", "autoencoder", "dblstm", "transformer", "resnet50", "gpt2",
]  # fmt: skip
LOOPS = {"tensorflow": ["tf.function"], "torch": ["quickstart"], "jax": ["nnx.jit", "functional"]}
OURS = "ours"
UPPER_END = 1.05
POINT = 1.0
WORKER = Path(__file__).with_name("recommended_worker.py")


def wrapper(folder, backend):
    """Write a stand-in for the backend's interpreter; return its path. What is not the worker it passes on."""
    python, path = shlex.quote(interpreter_for(backend)), folder / f"python-{backend}"
    path.write_text(
        f'#!/bin/sh\nif [ "$1 $2 $4" = "-P -c kit.worker" ]; then\n  shift 4\n'
        f'  exec {python} {shlex.quote(str(WORKER))} "$@"\nfi\nexec {python} "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def measure(arguments):
    """Measure the chosen cells with their recommended loops beside them; return the profile's path."""
    folder = arguments.out.resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    cells, variants = [], {OURS: Variant(name=OURS)}
    for cell in chosen_cells(arguments, PARAMETERS, workload=NETWORKS):
        for loop in LOOPS[cell.backend]:
            variants.setdefault(loop, Variant(name=loop, python=wrapper(folder, cell.backend)))
        cells += [msgspec.structs.replace(cell, variant=name) for name in (OURS, *LOOPS[cell.backend])]
    run_rounds(arguments.out, cells, list(variants.values()), arguments.rounds, arguments.cycles, "synthetic")
    return arguments.out


class Judged(NamedTuple):
    """A cell against each of its loops."""

    rows: list[tuple]
    ratio: float  # the largest; infinite where a loop has no round
    high: float  # the largest upper end; infinite where a loop has too few rounds for an interval


def judge(profile, group):
    """Return what the rounds say of one cell."""
    samples = run_of("", profile, all_cycles=True).samples
    kit_cell, *loops = group.cells
    rows, ratios, highs = [], [], []
    for loop in loops:
        logs = list(log_ratios(METRICS["step_ns"], samples[kit_cell], samples[loop]).values())
        difference = over(logs)
        ratios.append(math.exp(statistics.fmean(logs)) if logs else math.inf)
        highs.append(difference.high if difference.has_interval else math.inf)
        shown = (f"{ratios[-1]:.4f}", "–")
        if difference.has_interval:
            sd = difference.se_log * math.sqrt(difference.count)
            shown = (Interval(difference.ratio, difference.low, difference.high), f"{100 * sd:.1f}")
        rows.append((name_of(samples[kit_cell].cell), samples[loop].cell.variant, shown[0], len(logs), shown[1]))
    return Judged(rows, max(ratios), max(highs))


def print_failures(profile):
    for launch in (launch for result in profile.cells for launch in result.launches if launch.failure is not None):
        why = launch.failure.reason
        print(f"failed: {launch.cell_key}: {why.code} {why.values}", file=sys.stderr)
        print(os.linesep.join(launch.failure.stderr_tail.splitlines()[-5:]), file=sys.stderr)


def main():
    parser = case_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--cycles", type=int, default=12)
    parser.add_argument("--out", type=Path, default=Path("bench/recommended.json"))
    parser.add_argument("--from", dest="judged", type=Path, action="append", help="judge this profile; repeatable")
    arguments = parser.parse_args()
    profiles = [read_profile(path) for path in arguments.judged or [measure(arguments)]]
    judged = [judge(profile, group) for profile in profiles for group in profile.groups]
    printed(
        [
            ("ours / recommended", "loop", "ratio [95 %]", "rounds", "SD %"),
            *(row for group_judged in judged for row in group_judged.rows),
        ]
    )
    print(f"of {len(judged)} cells, against every loop:")
    print(f"  upper end at most {UPPER_END}: {sum(group_judged.high <= UPPER_END for group_judged in judged)}")
    print(f"  ratio at most {POINT}: {sum(group_judged.ratio <= POINT for group_judged in judged)}")
    for profile in profiles:
        print_failures(profile)


if __name__ == "__main__":
    main()
