"""Taking turns against running alone: prints whether it changes what is measured (ratios), and what it gains (spreads).

    python tests/bench/bench_turns.py [--rounds 8] [--cycles 12] [--backend torch] [--workload mlp] [--task train]

In each round fresh members run alone, one after the other, each as long as a round's blocks together and not stopped;
then in turns, stopped in between; then alone again. Of each cell: the median step alone and in turns, and the ratio of
the round's medians, turns over the geometric mean of both times alone, so that a steady drift falls out. Of each pair:
the SD over rounds of the ratio of the medians alone (the first time), and of the median ratio within a cycle in turns.
"""

from __future__ import annotations

import math
import random
import statistics
from itertools import combinations

import numpy as np
from measuring import Interval, case_parser, chosen_cells, held, name_of, printed, timed

from kit.stats.estimate import over
from kit.suites.groups import GROUP_CELLS_MAX

BLOCK_S = 0.25


def alone(member, cycles):
    return math.log(statistics.median(timed(member.block(cycles * BLOCK_S))))


def measure_round(cells, cycles, draw):
    """Return ln step alone, in each cycle in turns, and alone again: (cells,), (cells, cycles), (cells,)."""
    places = range(len(cells))
    first, again, turns = np.empty(len(cells)), np.empty(len(cells)), np.empty((len(cells), cycles))
    with held(cells) as members:
        for place in draw.sample(places, len(cells)):
            first[place] = alone(members[place], cycles)
        for cycle in range(cycles):
            for place in draw.sample(places, len(cells)):
                turns[place, cycle] = math.log(statistics.median(timed(members[place].block(BLOCK_S))))
        for place in draw.sample(places, len(cells)):
            again[place] = alone(members[place], cycles)
    return first, turns, again


def main():
    parser = case_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--cycles", type=int, default=12)
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("--rounds: two at least, as a spread needs")
    cells = chosen_cells(arguments, workload=["mlp"], task=["train"])[:GROUP_CELLS_MAX]
    draw = random.Random(0)
    rounds = [measure_round(cells, arguments.cycles, draw) for _ in range(arguments.rounds)]
    first, turns, again = (np.array(values) for values in zip(*rounds, strict=True))
    in_turns, by_itself = np.median(turns, axis=2), (first + again) / 2
    rows = [("median step", "alone ms", "in turns ms", "turns / alone [95 %]")]
    for place, cell in enumerate(cells):
        ratio = over((in_turns - by_itself)[:, place].tolist())
        steps_ms = [math.exp(values[:, place].mean()) / 1e6 for values in (by_itself, in_turns)]
        rows.append((name_of(cell), *(f"{ms:.3f}" for ms in steps_ms), Interval(ratio.ratio, ratio.low, ratio.high)))
    printed(rows)
    print()
    rows = [("SD over rounds of a pair's ratio", "alone, one after the other", "in turns, by cycle")]
    for place, other in combinations(range(len(cells)), 2):
        apart, paired = first[:, place] - first[:, other], np.median(turns[:, place] - turns[:, other], axis=1)
        pair = f"{name_of(cells[place])} / {name_of(cells[other])}"
        rows.append((pair, *(f"{100 * values.std(ddof=1):.1f} %" for values in (apart, paired))))
    printed(rows)


if __name__ == "__main__":
    main()
