"""What a stopped member costs a running one: ratios of steps with 95 % intervals, CPU time, page faults, first steps.

    python tests/bench/bench_stopped_worker.py [--rounds 6] [--blocks 24] [--backend torch] [--neighbour torch jax]

In each round a fresh member runs blocks of 0.25 s in three ways, in random order, block by block. Before each block:

    at once    nothing: it is stopped and goes on
    sleepers   it is stopped for as long as two blocks take; beside it two processes sleep
    members    it is stopped while two real members run a block each

`members / sleepers` is what real neighbours leave behind (caches, clocks); `sleepers / at once` what the pause itself
does. Presence alone: blocks before the neighbours are started and after they are killed, against blocks `at once` in
between. A round's ratio is the median within its repetitions; the interval is Student's t over rounds. CPU time of the
stopped members during the blocks is from /proc/PID/stat, in the kernel's ticks.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from subprocess import Popen

from measuring import Interval, case_parser, chosen_cells, held, name_of, printed, timed

from kit.stats.estimate import over

BLOCK_S = 0.25
WAYS = ("at once", "sleepers", "members")
FIRST_STEPS = 10
# A lead-in is long enough from where on every step is within this of its block's median.
SETTLED = 1.02
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
MAJOR_FAULTS = "process.major_faults"


def cpu_s(pid):
    """Return user and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


@contextmanager
def sleepers(count):
    """Start processes that do nothing."""
    started = [Popen(["sleep", "infinity"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


class Found:
    """Sums over blocks, by the way that they were run."""

    def __init__(self):
        self.logs = defaultdict(list)  # (round, way) -> ln of each block's median step
        self.first = defaultdict(list)  # (way, place after the switch) -> step / block's median, and when it ended, ms
        self.major_faults = defaultdict(int)
        self.stopped_cpu_s = self.span_s = 0.0

    def block(self, number, way, member, stopped=()):
        before = [cpu_s(process.pid) for process in stopped]
        done = member.block(BLOCK_S)
        self.stopped_cpu_s += sum(cpu_s(process.pid) for process in stopped) - sum(before)
        if stopped:
            self.span_s += done.part.blocks.span_ns[0] / 1e9
        middle = median(timed(done))
        self.logs[number, way].append(math.log(middle))
        self.major_faults[way] += done.part.blocks.counters[MAJOR_FAULTS][0] or 0
        ended_ns = 0
        for place, step_ns in enumerate(done.step_ns[:FIRST_STEPS]):
            ended_ns += step_ns
            self.first[way, place].append((step_ns / middle, ended_ns / 1e6))

    def ratio(self, way, other):
        """Return the ratio of the rounds' median steps, with its interval."""
        rounds = sorted({number for number, _ in self.logs})
        difference = over([self._log_ratio(self.logs[number, way], self.logs[number, other]) for number in rounds])
        if not difference.has_interval:
            return "two rounds at least"
        return Interval(difference.ratio, difference.low, difference.high)

    def _log_ratio(self, a, b):
        if len(a) != len(b):  # not of the same repetitions
            return median(a) - median(b)
        return median(x - y for x, y in zip(a, b, strict=True))


def measure_round(results, number, cell, neighbours, blocks):
    draw = random.Random(number)
    with held([cell]) as (member,), sleepers(2):
        for _ in range(blocks):
            results.block(number, "alone", member)
        with held(neighbours) as others:
            for _ in range(blocks):
                for way in draw.sample(WAYS, len(WAYS)):
                    for other in draw.sample(others, len(others)) if way != "at once" else ():
                        if way == "members":
                            counters = other.block(BLOCK_S).part.blocks.counters
                            results.major_faults["neighbours'"] += counters[MAJOR_FAULTS][0] or 0
                        else:
                            time.sleep(BLOCK_S)
                    results.block(number, way, member, others)
        for _ in range(blocks):
            results.block(number, "alone", member)


def print_found(results):
    printed(
        [("step", "ratio [95 %]")]
        + [
            (f"{way} / {other}", results.ratio(way, other))
            for way, other in (("members", "sleepers"), ("sleepers", "at once"), ("at once", "alone"))
        ]
    )
    share = 100 * results.stopped_cpu_s / results.span_s
    print(
        f"CPU time of two stopped members: {share:.4f} % of {results.span_s:.0f} s of the other's blocks "
        f"(ticks of {TICK_S:g} s)"
    )
    print("major page faults: " + ", ".join(f"{count} {way}" for way, count in results.major_faults.items()))


def print_first_steps(results):
    rows = [("step after the switch / block's median", *WAYS)]
    settled = dict.fromkeys(WAYS, (0, 0.0))
    for place in range(FIRST_STEPS):
        cells = []
        for way in WAYS:
            ratios, ended_ms = zip(*results.first[way, place] or [(math.nan, 0)], strict=True)
            cells.append(f"{median(ratios):.3f}")
            if median(ratios) > SETTLED:
                settled[way] = (place + 1, median(ended_ms))
        rows.append((place + 1, *cells))
    printed(rows)
    print(
        f"lead-in until steps are within {SETTLED}: "
        + ", ".join(f"{way} {n} steps, {ms:.1f} ms" for way, (n, ms) in settled.items())
    )


def main():
    parser = case_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--blocks", type=int, default=24, help="of each way in a round")
    parser.add_argument("--neighbour", nargs=2, default=["torch", "jax"])
    arguments = parser.parse_args()
    (cell, *_) = chosen_cells(arguments, backend=["torch"], workload=["mlp"], task=["train"])
    arguments.backend = None
    neighbours = [
        chosen_cells(arguments, backend=[name], workload=["mlp"], task=["train"])[0] for name in arguments.neighbour
    ]
    results = Found()
    for number in range(arguments.rounds):
        measure_round(results, number, cell, neighbours, arguments.blocks)
    beside = " and ".join(map(name_of, neighbours))
    print(f"{name_of(cell)} beside {beside}, {arguments.rounds} rounds of {arguments.blocks} blocks")
    print_found(results)
    print_first_steps(results)


if __name__ == "__main__":
    main()
