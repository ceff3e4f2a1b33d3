"""Short turns and short warm-ups: what they gain, and what they would change. A run prints all its tables.

    python tests/bench/bench_short_turns.py [--rounds 6] [--backend torch] [--workload mlp] [--task train]

In each round every framework starts once, holding all its cells. Cells of one network and task take turns, for a
second and a half of each turn length, in random order. Prints

    window      SD within a round of the log-ratio of two frameworks' whole times over 0.25 s of turns, of all pairs
    cost        what a turn takes beside its steps
    after       how much longer steps take than those 50 ms and more after a switch, by the time since the switch
    warm-up     when `is_warm` would end a warm-up, and the pace of the 0.25 s after that over the rest of it
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections import defaultdict
from itertools import combinations, pairwise

import numpy as np
from measuring import case_parser, chosen_cells, printed, worker_spec_of

from kit.profile.schema import Group
from kit.runner.interrupt import StopFlag
from kit.runner.round_worker import RoundWorker
from kit.runner.warm_up_and_blocks import WARM_UP_PART_S, is_warm, pace_ns
from kit.runner.worker_processes import Ranks
from kit.suites.groups import WorkerPlan
from kit.suites.suite import MeasureTable

TURNS_S = (0.05, 0.1, 0.25)
WINDOW_S, MEASURED_S = 0.25, 1.5
LEADS_IN_S = {0.05: 0.01, 0.1: 0.01, 0.25: 0.02}
EDGES_MS = (0, 5, 10, 20, 30, 50, 80, 120, 180, 250)
SETTLED_MS = 50
# As before warm-ups could end early: it shows what comes after such an end.
WHOLE = MeasureTable(lead_in_s=0.0, warmup_least_s=1.0).plan()
EARLY = MeasureTable().plan()


class Series:
    """What all rounds gave."""

    def __init__(self):
        self.windows = defaultdict(list)  # turn length -> deviations of log-ratios from their round's mean
        self.costs_ms = defaultdict(list)
        self.after = defaultdict(list)  # (cell, edge) -> log-ratios
        self.warm = defaultdict(list)  # cell -> (seconds, log-ratio)


def started(cells, groups):
    """Return a worker that holds these cells of one framework, its framework imported."""
    spec = worker_spec_of(cells[0])._replace(cells=cells)
    worker = RoundWorker(WorkerPlan("bench", cells), spec, Ranks(spec, StopFlag()), WHOLE, groups, 0)
    worker.prepare()
    return worker


def timed(step_ns, lead_in_s):
    """Return time and number of the steps after a lead-in, of which one at least is left."""
    ends_s = np.cumsum(step_ns) / 1e9
    first = min(max(1, int(np.searchsorted(ends_s, lead_in_s))), len(step_ns) - 1)
    return float(step_ns[first:].sum()), len(step_ns) - first


def take_turns(group, members, turn_s, draw, seen):
    """Let the members of a group take turns of one length."""
    cycles = round(MEASURED_S / turn_s)
    taken = {name: [] for name in members}
    for cycle in range(cycles):
        for name in draw.sample(list(members), len(members)):
            worker, cell = members[name]
            begin_s = time.monotonic()
            worker.take_turn(cell.key, turn_s)
            blocks, step_ns = worker.end_block(cell.key, cycle)
            seen.costs_ms[turn_s].append(1e3 * (time.monotonic() - begin_s) - blocks.span_ns[0] / 1e6)
            taken[name].append(timed(step_ns, LEADS_IN_S[turn_s]))
            if turn_s == WINDOW_S and cycle:
                note_after(f"{name} {group}", step_ns, seen)
    each = round(WINDOW_S / turn_s)
    for a, b in combinations(members, 2):
        logs = []
        for at in range(0, cycles - each + 1, each):
            (mine_ns, mine), (yours_ns, yours) = (
                map(sum, zip(*taken[name][at : at + each], strict=True)) for name in (a, b)
            )
            logs.append(math.log(mine_ns / mine / (yours_ns / yours)))
        seen.windows[turn_s] += [log - statistics.fmean(logs) for log in logs]


def note_after(cell, step_ns, seen):
    """Note how much longer steps took, by the time since the switch."""
    begins_ms = (np.cumsum(step_ns) - step_ns) / 1e6
    settled = step_ns[begins_ms >= SETTLED_MS]
    if settled.size < 5:
        return
    for begin_ms, end_ms in pairwise(EDGES_MS):
        within = step_ns[(begins_ms >= begin_ms) & (begins_ms < end_ms)]
        if within.size:
            seen.after[cell, begin_ms].append(math.log(np.median(within) / np.median(settled)))


def note_warm_up(name, cell, step_ns, seen):
    """Note where a warm-up would have ended, and what came after that."""
    at, parts_ns, pace = 0, [], float(step_ns[0])
    while at < step_ns.size and not is_warm(EARLY, cell, int(step_ns[:at].sum()), at, parts_ns):
        part = step_ns[at : at + max(1, round(WARM_UP_PART_S * 1e9 / pace))]
        pace, at = pace_ns(part), at + part.size
        parts_ns.append(pace)
    left = step_ns[at:]
    split = int(np.searchsorted(np.cumsum(left), WINDOW_S * 1e9)) + 1
    if left.size > split + 2:
        log = math.log(np.median(left[:split]) / np.median(left[split:]))
        seen.warm[name].append((step_ns[:at].sum() / 1e9, log))


def measure_round(cells, draw, seen):
    """Start all frameworks, and let each group take turns of each length."""
    by_group = defaultdict(dict)
    for cell in cells:
        by_group[f"{cell.workload} {cell.task}"][cell.backend] = cell
    groups = [
        Group(key=name, cells=[cell.key for cell in members.values()], baseline=next(iter(members.values())).key)
        for name, members in by_group.items()
    ]
    workers = {}
    try:
        backends = sorted({cell.backend for cell in cells})
        for backend in draw.sample(backends, len(backends)):
            workers[backend] = started([cell for cell in cells if cell.backend == backend], groups)
        for group in draw.sample(list(by_group), len(by_group)):
            members = {backend: (workers[backend], cell) for backend, cell in by_group[group].items()}
            for name, (worker, cell) in members.items():
                worker.build(cell.key, group)
                worker.warm_up(cell.key, group)
                note_warm_up(f"{name} {group}", cell, worker.steps[cell.key, group][-1], seen)
            for turn_s in draw.sample(TURNS_S, len(TURNS_S)):
                take_turns(group, members, turn_s, draw, seen)
    finally:
        for worker in workers.values():
            worker.end()


def robust_sd(values):
    """Return the SD of normal values with this median absolute deviation."""
    return 1.4826 * float(np.median(np.abs(values)))


def main():
    parser = case_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()
    cells, draw, seen = chosen_cells(arguments), random.Random(0), Series()
    for _ in range(arguments.rounds):
        measure_round(cells, draw, seen)
    rows = [("turn", "windows", "SD", "robust SD", "cost of a turn")]
    for turn_s in TURNS_S:
        logs = seen.windows[turn_s]
        sds = (f"{100 * sd:.1f} %" for sd in (statistics.pstdev(logs), robust_sd(logs)))
        rows.append((f"{1e3 * turn_s:.0f} ms", len(logs), *sds, f"{statistics.median(seen.costs_ms[turn_s]):.1f} ms"))
    printed(rows)
    print()
    edges = [*pairwise(EDGES_MS)]
    rows = [("steps after a switch", *(f"{begin} to {end} ms" for begin, end in edges))]
    for cell in dict.fromkeys(cell for cell, _ in seen.after):
        shown = [seen.after.get((cell, begin), []) for begin, _ in edges]
        rows.append((cell, *(f"{100 * statistics.median(logs):+.1f} %" if logs else "–" for logs in shown)))
    printed(rows)
    print()
    rows = [("warm-up", "would end after", "pace of the next 0.25 s over the rest")]
    for name, known in seen.warm.items():
        seconds, logs = zip(*known, strict=True)
        rows.append((name, f"{statistics.fmean(seconds):.2f} s", f"{100 * statistics.median(logs):+.1f} %"))
    printed(rows)


if __name__ == "__main__":
    main()
