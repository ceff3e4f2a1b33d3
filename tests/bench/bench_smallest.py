"""The smallest difference that nine of ten runs so long find, by what profiles show of the spread between rounds.

    python tests/bench/bench_smallest.py PROFILE.json …

A row is a profile: of each pair of a group, the SD of the log-ratio over rounds is pooled over the pairs of all groups;
bimodal pairs are left out. Printed for each number of seconds is the difference with which the t-test of the mean over
the rounds that fit into them has a power of 0.9 (scipy.stats.nct): as if nothing but this one pair were judged.
"""

from __future__ import annotations

import math
import statistics
import sys
from itertools import combinations
from pathlib import Path

from measuring import printed
from scipy.optimize import brentq
from scipy.stats import nct, t

from kit.compare.metrics import METRICS
from kit.compare.notes import read_run
from kit.compare.ratios import log_ratios
from kit.profile.store import read_profile
from kit.runner.plan_ahead import round_s
from kit.stats.estimate import ROUNDS_FOR_VERDICT

STEP = METRICS["step_ns"]
SECONDS = (60, 120, 240, 600)
POWER = 0.9


def smallest(sd, rounds):
    """Return the difference of logarithms that a t-test of the mean of so many rounds finds with POWER."""
    edge = t.ppf(0.975, rounds - 1)
    errors = brentq(lambda size: nct.sf(edge, rounds - 1, size) - POWER, 0.0, 100.0)
    return sd * errors / math.sqrt(rounds)


def cells_of(sd, seconds_a_round):
    """Return the rest of a row: seconds of a round, SD, and the smallest difference after each number of seconds."""
    rounds = {seconds: int(seconds / seconds_a_round) for seconds in SECONDS}
    sizes = [
        f"{100 * math.expm1(smallest(sd, count)):.1f} %" if count >= ROUNDS_FOR_VERDICT else ""
        for count in rounds.values()
    ]
    return [f"{seconds_a_round:.1f}", f"{100 * sd:.1f} %", *sizes]


def print_profiles(paths):
    """Print a row for each profile."""
    rows = [("smallest found in 9 of 10", "pairs", "s a round", "SD", *(f"{seconds} s" for seconds in SECONDS))]
    for path in paths:
        profile = read_profile(path)
        variances, weights = [], []
        for group in read_run(path.stem, profile).groups:
            bimodal = {key for _, key in group.modes}
            for (key, sample), (other, second) in combinations(group.samples.items(), 2):
                logs = list(log_ratios(STEP, sample, second).values())
                if len(logs) > 1 and not bimodal & {key, other}:
                    variances.append(statistics.variance(logs))
                    weights.append(len(logs) - 1)
        if not variances:
            sys.exit(f"{path}: no pair has two rounds")
        launches = [launch for result in profile.cells for launch in result.launches]
        numbers = sorted({launch.round for launch in launches})
        each_s = [round_s([launch for launch in launches if launch.round == number]) for number in numbers]
        sd = math.sqrt(statistics.fmean(variances, weights))
        rows.append((path.stem, len(variances), *cells_of(sd, statistics.fmean(each_s))))
    printed(rows)


if __name__ == "__main__":
    print_profiles([Path(name) for name in sys.argv[1:]])
