"""How often verdicts are wrong, and how often they find a difference: simulated measurements, the kit's own functions.

    python tests/bench/bench_verdicts.py [--trials 2000] [--table sessions --table same ...]

Rates have the exact binomial interval (Clopper and Pearson 1934).

    sessions     several runs of two builds. A run's level varies by 2.3 % within a session, and each session has a
                 level of its own. `in turn`: the sides alternate, and each pair of neighbours has a session's level;
                 `one after the other`: each side is one session; `as if independent`: the same runs, days apart by
                 their times, which is how they were judged before sessions were told apart
    same         families of pairs that are truly 1 % apart: a *same* is false. Eight rounds, SD 0.6 %
    small        one pair with a planted difference, by the standard error that its rounds leave
    families     cells against a baseline, one of them slower by 3 %; eight rounds, SD 2.3 % in each cell. `all pairs`
                 as they were judged before; `a family` is the comparisons with the baseline, and first against second
    levels       a cell is 30 % slower in one of ten starts: what an interval over n starts holds of its mean
"""

from __future__ import annotations

import argparse
import math
from itertools import combinations

import numpy as np
from bench_self import share
from measuring import printed

from kit.compare.pairs import family_of
from kit.stats.difference import over_rounds
from kit.stats.runs import RunLevel, over_runs
from kit.stats.verdict import judge_family

IN_SESSION_SD = 0.023
SESSION_SDS = (0.0, 0.026, 0.05, 0.107)
RUN_S, DAY_S = 300.0, 86_400.0
TOLD = ("faster", "slower")


def sides_of(rng, counts, session_sd, planted, order):
    """Return two sides of runs; see the head of this file for `order`."""
    a, b = counts
    levels = rng.normal(0, IN_SESSION_SD, a + b)
    if order == "in turn":
        sides, sessions = [0, 1] * a, np.repeat(rng.normal(0, session_sd, a), 2)
    else:
        sides, sessions = [0] * a + [1] * b, np.repeat(rng.normal(0, session_sd, 2), counts)
    step_s = DAY_S if order == "as if independent" else RUN_S
    runs = ([], [])
    for number, (side, level) in enumerate(zip(sides, levels + sessions, strict=True)):
        begin_s = number * step_s
        log = float(level) + (planted if side == 0 else 0.0)
        runs[side].append(RunLevel(log, IN_SESSION_SD / 2, 8, begin_s=begin_s, end_s=begin_s + RUN_S / 2))
    return runs


def sessions(trials):
    """Yield the rows of the first table."""
    yield "session SD", "runs", "order", "called different, truly alike", "planted 10 % found"
    cases = [((1, 1), False), ((3, 1), False), ((3, 3), False), ((5, 5), False)]
    cases += [((3, 3), True), ((4, 4), True), ((5, 5), True)]
    for session_sd in SESSION_SDS:
        for counts, is_in_turn in cases:
            for order in ("in turn",) if is_in_turn else ("as if independent", "one after the other"):
                rates = []
                for planted in (0.0, math.log(1.1)):
                    rng = np.random.default_rng(7)
                    judged = [
                        over_runs(*sides_of(rng, counts, session_sd, planted, order), same_hardware=True)
                        for _ in range(trials)
                    ]
                    hits = TOLD if planted == 0 else ("slower",)
                    rates.append(share(sum(versus.verdict in hits for versus in judged), trials))
                yield f"{100 * session_sd:.1f} %", "{}+{}".format(*counts), order, *rates


def same(trials):
    """Yield the rows of the second table."""
    yield "pairs, truly 1 % apart", "families with a false same"
    for pairs in (1, 3, 10):
        rng = np.random.default_rng(pairs)
        false = 0
        for _ in range(trials):
            logs = math.log(1.01) + rng.normal(0, 0.006, (pairs, 8))
            false += any(versus.verdict == "same" for versus in judge_family(logs.tolist()))
        yield pairs, share(false, trials)


def small(trials):
    """Yield the rows of the third table."""
    yield "true difference", "rounds, SD", "slower", "faster", "same", "95 % interval holds it"
    for true_pct in (0.0, 0.5, 1.0, 2.0):
        for rounds, sd in ((8, 0.012), (40, 0.023), (90, 0.023)):
            rng = np.random.default_rng(rounds)
            truth = math.log1p(true_pct / 100)
            judged = [judge_family([rng.normal(truth, sd, rounds).tolist()])[0] for _ in range(trials)]
            counts = [sum(versus.verdict == verdict for versus in judged) for verdict in ("slower", "faster", "same")]
            held = sum(math.log(versus.low) <= truth <= math.log(versus.high) for versus in judged)
            yield f"{true_pct:g} %", f"{rounds}, {100 * sd:.1f} %", *(share(n, trials) for n in (*counts, held))


def families(trials):
    """Yield the rows of the fourth table."""
    yield "cells", "judged", "slower one found", "families with a false alarm"
    for cells in (3, 5, 10):
        for judged_pairs in ("all pairs", "a family"):
            rng = np.random.default_rng(cells)
            hits = alarmed = 0
            for _ in range(trials):
                logs = rng.normal(0, 0.023 / math.sqrt(2), (cells, 8))
                logs[-1] += math.log(1.03)
                names = list(range(cells))
                pairs = list(combinations(names, 2)) if judged_pairs == "all pairs" else None
                pairs = pairs or family_of(names, 0, lambda name, base, logs=logs: logs[name] - logs[base])
                judged = dict(zip(pairs, judge_family([(logs[a] - logs[b]).tolist() for a, b in pairs]), strict=True))
                planted = judged.get((0, cells - 1)) or judged[cells - 1, 0].inverted()
                hits += planted.verdict == "faster"
                alarmed += any(versus.verdict in TOLD for (a, b), versus in judged.items() if cells - 1 not in (a, b))
            yield cells, judged_pairs, share(hits, trials), share(alarmed, trials)


def levels(trials):
    """Yield the rows of the fifth table."""
    yield "starts", "interval holds the mean", "no slow start was seen"
    for starts in (3, 4, 8, 16, 32):
        rng = np.random.default_rng(starts)
        is_slow = rng.random((trials, starts)) < 0.1
        logs = rng.normal(0, 0.01, (trials, starts)) + is_slow * math.log(1.3)
        mean = 0.1 * math.log(1.3)
        held = sum(low <= mean <= high for low, high in (over_rounds(row).log_interval() for row in logs))
        yield starts, share(held, trials), share(int((~is_slow.any(axis=1)).sum()), trials)


TABLES = {"sessions": sessions, "same": same, "small": small, "families": families, "levels": levels}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--table", choices=TABLES, action="append")
    arguments = parser.parse_args()
    for name in arguments.table or TABLES:
        print(f"\n{name}")
        printed(list(TABLES[name](arguments.trials)))


if __name__ == "__main__":
    main()
