"""Fleets of like nodes whose numbers have tails: how many name a node slow, by one measurement and by a second one.

python tests/bench/bench_fleet_tails.py [--draws 400] [--sd 0.02]

The tails are of single measurements, which a second one does not repeat, or of nodes, which it does: such a node is
slow. Slow nodes are planted to see what the second measurement costs.
"""

import argparse
import math

import numpy as np
from scipy.stats import binomtest

from kit.stats.fleet_outliers import judge_fleet, said_again
from kit.stats.sessions import RunLevel

SIZES = (8, 32, 128)
SIGMA = 0.5  # of the lognormal
DISTRIBUTIONS = {
    "normal": lambda rng, size: rng.normal(0, 1, size),
    "t3": lambda rng, size: rng.standard_t(3, size) / math.sqrt(3),
    "lognormal": lambda rng, size: (
        (np.exp(SIGMA * rng.normal(0, 1, size)) - math.exp(SIGMA**2 / 2))
        / math.sqrt((math.exp(SIGMA**2) - 1) * math.exp(SIGMA**2))
    ),
}
# What a node's measurements differ by where the tails are of nodes, and the error that rounds show.
REPEATS_SD, ROUNDS_SE, ROUNDS = 0.003, 0.003, 8
TITLES = {
    "measurement": "tails of single measurements",
    "node": f"tails of nodes; a node repeats within {100 * REPEATS_SD:.1f} %",
}


class Nodes:
    """Nodes that can be measured as often as wanted."""

    def __init__(self, tails_of, distribution, *, count, sd, slow_pct, rng):
        draw = DISTRIBUTIONS[distribution]
        self.levels = sd * draw(rng, count) if tails_of == "node" else np.zeros(count)
        self.levels[0] += math.log1p(slow_pct / 100)
        self.noise = (
            (lambda: REPEATS_SD * float(rng.normal())) if tails_of == "node" else (lambda: sd * float(draw(rng, 1)[0]))
        )

    def measured(self, place):
        return RunLevel(float(self.levels[place]) + self.noise(), ROUNDS_SE, ROUNDS)


def slower(judged):
    return {place for place, versus in enumerate(judged) if versus.verdict == "slower"}


def named(nodes, runs_each=1):
    """Return the nodes that stand out as slower by `runs_each` runs of every node, and those that are named slow.

    As `kit fleet` does, each that stands out is measured once more.
    """
    runs = [[nodes.measured(place) for _ in range(runs_each)] for place in range(len(nodes.levels))]
    judged = judge_fleet(runs)
    first = slower(judged)
    while suspects := [place for place in slower(judged) if len(runs[place]) == 1]:
        for place in suspects:
            runs[place].append(nodes.measured(place))
        judged = judge_fleet(runs)
    return first, {place for place in slower(judged) if said_again(runs, judged)[place]}


def share(count, draws):
    interval = binomtest(count, draws).proportion_ci(method="wilson")
    return f"{100 * count / draws:5.1f} [{100 * interval.low:4.1f}, {100 * interval.high:4.1f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--sd", type=float, default=0.02, help="of what has tails")
    parser.add_argument("--runs", type=int, default=1, help="of each node, before suspects are measured again")
    args = parser.parse_args()
    print(
        f"SD {100 * args.sd:.1f} %, {args.draws} draws, {args.runs} profiles a node; in %, with 95 % intervals (Wilson)"
    )
    for tails_of, title in TITLES.items():
        print(f"\n{title}\n{'':21}a like node is named slow by         the planted one is found by")
        print("nodes  distribution  slow by   once                twice               once                twice")
        for distribution in DISTRIBUTIONS:
            for count in SIZES:
                for slow_pct in (0, 5, 10):
                    rng = np.random.default_rng([count, slow_pct])
                    planted = {0} if slow_pct else set()
                    counts = np.zeros((2, 2), int)
                    for _ in range(args.draws):
                        nodes = Nodes(tails_of, distribution, count=count, sd=args.sd, slow_pct=slow_pct, rng=rng)
                        for column, places in enumerate(named(nodes, args.runs)):
                            counts[:, column] += bool(places - planted), bool(places & planted)
                    shares_found = [share(value, args.draws) for value in counts[1]] if slow_pct else []
                    columns = [*(share(value, args.draws) for value in counts[0]), *shares_found]
                    print(f"{count:>5}  {distribution:<12}  {slow_pct:>5} %   {'   '.join(columns)}", flush=True)


if __name__ == "__main__":
    main()
