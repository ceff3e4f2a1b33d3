"""What of a start is where its memory lies: the spread of starts with weights left, restored and scattered.

    python tests/bench/bench_layouts.py [--backend torch] [--workload mlp] [--task train] [--starts 40]
    python tests/bench/bench_layouts.py --starts 0                                     judge what is known

Each start is of three processes of a framework on one thread, which take short turns with a fourth, the reference, that
runs as long as its framework is measured: what the machine does is in both and falls out. Before each turn a process

    left        does nothing: as long as it lives, its memory is where its start put it
    restored    puts its weights and optimizer state back, into new memory, as the kit does between blocks of training
    scattered   does so while it holds a random number of allocations of random sizes, and copies its batches anew

A start is one line of KEPT. Prints the SD of what a start adds to the logarithm of a step: the variance of
the means of starts, less what the spread of their turns leaves in a mean. The intervals come from drawing starts anew.

C. Curtsinger and E. D. Berger, "STABILIZER: Statistically Sound Performance Evaluation", ASPLOS 2013, is the idea's
source: a start whose memory moves has many layouts in its mean.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from bench_bare_loop import bare_loop_ns, built
from measuring import case_parser, chosen_cells, name_of, printed

from kit.backends.backend_catalog import load
from kit.backends.entry import THREAD_VARIABLES
from kit.worker.inputs import feed

KEPT = Path(__file__).parents[2] / "profiles/evidence/layouts.jsonl"
MODES = ("left", "restored", "scattered")
REFERENCE = "restored"
TURNS, TURN_S, LEAD_IN_S, WARMUP_S, STEPS_MIN = 8, 0.1, 0.02, 0.4, 2
# Some are below the size from which the C library maps memory for each allocation, and some above.
HELD_MOST, HELD_B = 64, (1 << 10, 1 << 21)
DRAWS = 2000


class Member:
    """A cell's program in this process, and what it does before each turn."""

    def __init__(self, cell, mode):
        self.cell, self.mode, self.held = cell, mode, []
        self.program, self.pool = built(cell)
        self.batches = feed(self.program, self.pool, cell)
        if mode != "left":
            if cell.backend == "torch" and cell.task == "infer":
                self.program._optimizer = SimpleNamespace(state={})  # the kit restores nothing in inference
            self.program.keep()
        self.median_ns(WARMUP_S)

    def median_ns(self, seconds):
        """Run steps for so long; return the median of a step in nanoseconds."""
        end_s, step_ns = time.monotonic() + seconds, []
        while time.monotonic() < end_s or len(step_ns) < STEPS_MIN:
            step_ns.append(bare_loop_ns(self.program, self.batches, 1))
        return statistics.median(step_ns)

    def turn_ns(self):
        """Do what the mode says, then a turn; return the median of a step in nanoseconds."""
        if self.mode == "scattered":
            self.held = [bytearray(random.randint(*HELD_B)) for _ in range(random.randint(0, HELD_MOST))]
            self.batches = feed(self.program, self.pool, self.cell)
        if self.mode != "left":
            self.program.restore()
        self.median_ns(LEAD_IN_S)
        return self.median_ns(TURN_S)


def serve(cells, mode):
    """Take a turn of the cell whose number a line of standard input says, until it ends."""
    load(cells[0].backend).set_threads(1)
    members = [Member(cell, mode) for cell in cells]
    print("ready", flush=True)
    for line in sys.stdin:
        print(members[int(line)].turn_ns(), flush=True)


def child(backend, mode):
    """Start a process that serves the cells of a framework."""
    words = [sys.executable, *sys.argv, "--backend", backend, "--serve", mode]
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
    return subprocess.Popen(words, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def answer(process, line=""):
    """Return the process's next line, after telling it one."""
    if line:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def end(process):
    """Let a process end."""
    process.stdin.close()
    process.wait()


def measure_start(cells, reference):
    """Return, of each mode and cell, the log-ratios of its turns to the reference's of the same cycle."""
    members = {mode: child(cells[0].backend, mode) for mode in random.sample(MODES, len(MODES))}
    for process in members.values():
        assert answer(process) == "ready"
    logs = {mode: {name_of(cell): [] for cell in cells} for mode in MODES}
    every = {"": reference, **members}
    for _ in range(TURNS):
        for number, cell in enumerate(cells):
            step_ns = {mode: float(answer(every[mode], str(number))) for mode in random.sample(list(every), len(every))}
            for mode in MODES:
                logs[mode][name_of(cell)].append(round(math.log(step_ns[mode] / step_ns[""]), 6))
    for process in members.values():
        end(process)
    return logs


def start_variance(starts):
    """Return the variance that a start adds, of logarithms (starts, turns); below 0 where turns explain it."""
    return starts.mean(axis=1).var(ddof=1) - starts.var(axis=1, ddof=1).mean() / starts.shape[1]


def sd_pct(variance):
    """Return an SD of logarithms in percent."""
    return 100 * math.sqrt(max(variance, 0.0))


def print_all(lines):
    """Print what a start adds in each mode, and how much more leaving adds than moving."""
    by_cell = defaultdict(lambda: defaultdict(list))
    for line in lines:
        for mode, cells in line.items():
            for name, logs in cells.items():
                by_cell[name][mode].append(logs)
    rows = [("SD that a start adds", "starts", *MODES, "left - restored", "left - scattered", "SD of a turn")]
    draw = np.random.default_rng(0)
    for name, modes in sorted(by_cell.items()):
        arrays = [np.array(modes[mode]) for mode in MODES]
        count = len(arrays[0])
        places = draw.integers(0, count, (DRAWS, count))
        drawn = [[sd_pct(start_variance(array[at])) for at in places] for array in arrays]
        spread = [
            f"{sd_pct(start_variance(array)):.1f} {interval(each)}" for array, each in zip(arrays, drawn, strict=True)
        ]
        gains = [interval(np.subtract(drawn[0], each)) for each in drawn[1:]]
        turn = sd_pct(np.mean([array.var(axis=1, ddof=1).mean() for array in arrays]))
        rows.append((name, count, *spread, *gains, f"{turn:.1f}"))
    printed(rows)


def interval(values):
    """Return the middle 95 %, in percent."""
    low, high = np.quantile(values, [0.025, 0.975])
    return f"[{low:.1f}, {high:.1f}]"


def main():
    """Measure and print."""
    parser = case_parser(__doc__)
    parser.add_argument("--starts", type=int, default=40)
    parser.add_argument("--lines", type=Path, default=KEPT, metavar="FILE")
    parser.add_argument("--serve", choices=MODES)
    options = parser.parse_args()
    cells = sorted(chosen_cells(options, workload=["mlp"]), key=lambda cell: cell.backend)
    if options.serve:
        backend = options.backend[-1]
        serve([cell for cell in cells if cell.backend == backend], options.serve)
        return
    for backend, of_backend in groupby(cells, key=lambda cell: cell.backend) if options.starts else ():
        its_cells = list(of_backend)
        reference = child(backend, REFERENCE)
        assert answer(reference) == "ready"
        for start in range(options.starts):
            logs = measure_start(its_cells, reference)
            with options.lines.open("a") as lines:
                lines.write(json.dumps(logs) + "\n")
            print(backend, start, file=sys.stderr, flush=True)
        end(reference)
    print_all([json.loads(line) for line in options.lines.read_text().splitlines()])


if __name__ == "__main__":
    main()
