"""How good a forecast of precision is: the half-widths that runs ended with, over those that were foreseen.

    python tests/bench/bench_forecast.py PROFILE.json …

Of each profile with eight rounds or more, what a run foresees after two and after four of its rounds (kit/runner/
plan_ahead) is compared with its end: the half-width of the 95 % interval of each pair of a group, for as many rounds
and cycles as it had. `another run` is what `--dry-run` has: a profile of the same cells on the same hardware, all of
whose rounds are known.

    result ÷ foreseen     geometric mean over the pairs of a run, and then over runs, with a 95 % interval of that
    within 1.5, within 2  share of pairs in which the larger of the two is at most so many times the smaller
"""

from __future__ import annotations

import math
import statistics
import sys
from itertools import permutations
from pathlib import Path

from bench_self import share
from measuring import printed
from scipy.stats import t

from kit.profile.store import read_profile
from kit.runner.plan_ahead import logs_by_cycle
from kit.stats.estimate import ROUNDS_PRELIMINARY
from kit.stats.two_components import components, half_width

LOOKS = (2, 4)
WITHIN = (1.5, 2.0)


def rounds_of(profile, most):
    """Return of each pair, by its group's key and its place there, the log-ratios of the cycles of `most` rounds."""
    cells = [result.cell for result in profile.cells]
    launches = [launch for result in profile.cells for launch in result.launches if launch.round < most]
    return {
        (group.key, place): rounds
        for group in profile.groups
        for place, rounds in enumerate(
            logs_by_cycle(profile.suite, group, cells, [launch for launch in launches if launch.group == group.key])
        )
    }


def errors(known, result):
    """Return log(result / foreseen) of each pair."""
    logs = []
    for key, rounds in result.items():
        pair = components(known.get(key, []))
        if pair is None or len(rounds) < ROUNDS_PRELIMINARY:
            continue
        medians = [statistics.median(cycles) for cycles in rounds]
        width = t.ppf(0.975, len(medians) - 1) * statistics.stdev(medians) / math.sqrt(len(medians))
        cycles = statistics.median(map(len, rounds))
        logs.append(math.log(width / half_width(pair, cycles, len(medians))))
    return logs


def row(name, runs):
    """Return the row of some runs, each a list of log(result / foreseen)."""
    means, every = [statistics.fmean(logs) for logs in runs], [log for logs in runs for log in logs]
    middle = statistics.fmean(means)
    ends = ""
    if len(means) > 1:
        off = t.ppf(0.975, len(means) - 1) * statistics.stdev(means) / math.sqrt(len(means))
        ends = f" [{math.exp(middle - off):.2f}, {math.exp(middle + off):.2f}]"
    within = [share(sum(abs(log) <= math.log(most) for log in every), len(every)) for most in WITHIN]
    return (name, len(runs), len(every), f"{math.exp(middle):.2f}{ends}", *within)


def main():
    profiles = [read_profile(Path(name)) for name in sys.argv[1:]]
    whole = [(profile, rounds_of(profile, math.inf)) for profile in profiles]
    rows = [("foreseen by", "runs", "pairs", "result ÷ foreseen", *(f"within {most:g}" for most in WITHIN))]
    for look in LOOKS:
        runs = [errors(rounds_of(profile, look), result) for profile, result in whole]
        rows.append(row(f"its first {look} rounds", [logs for logs in runs if logs]))
    others = [
        errors(before, result)
        for (earlier, before), (profile, result) in permutations(whole, 2)
        if earlier.identity.hardware_sha256 == profile.identity.hardware_sha256 and before.keys() >= result.keys()
    ]
    if any(others):
        rows.append(row("another run", [logs for logs in others if logs]))
    printed(rows)


if __name__ == "__main__":
    main()
