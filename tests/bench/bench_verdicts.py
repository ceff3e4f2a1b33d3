"""How often verdicts are wrong, and how often they find a difference: simulated measurements, the kit's own functions.

    python tests/bench/bench_verdicts.py [--trials 2000] [--table sessions --table same ...]

Rates have the exact binomial interval (Clopper and Pearson 1934).

    sessions     several runs of two builds. A run's level varies by 2.3 %, beside that of the machine. `one after the
                 other`: each side is a session with a level of its own; `as if independent`: the same runs, days apart
                 by their times, which is how they were judged before sessions were told apart. `A B A B` and `A B B A`:
                 in turn, ten minutes apart, on a machine whose level forgets itself within an hour
    drift        runs in turn on a machine that drifts steadily; a run varies by 0.5 %
    same         families of pairs that are truly 1 % apart: a *same* is false. Eight rounds, SD 0.6 %
    small        one pair with a planted difference, by the standard error that its rounds leave
    families     cells against a baseline, one of them slower by 3 %; eight rounds, SD 2.3 % in each cell. `all pairs`
                 as they were judged before; `a family` is the comparisons with the baseline, and first against second
    fastest      like cells; in how many groups one is named the fastest
    gate         `--fail-if-slower 5`: rows by what is true of all, or of one among alike ones; eight rounds. A run has
                 its own `run SD` beside its rounds. `one run` is how it was judged before; `confirmed`: with a second
                 run where the first leaves a row open
    levels       a cell is 30 % slower in one of ten starts: what an interval over n starts holds of its mean
"""

from __future__ import annotations

import argparse
import math
from itertools import combinations

import numpy as np
from bench_self import share
from measuring import printed

from kit.compare.fail_if_slower import Limit
from kit.compare.metrics import METRICS
from kit.compare.verdicts import Family, family_of, leaders_of
from kit.stats.estimate import SAME_LEVEL, judge, over, rounds_for, slower_by_more_than
from kit.stats.sessions import RunLevel, over_runs

IN_SESSION_SD = 0.023
SESSION_SDS = (0.0, 0.026, 0.05, 0.107)
RUN_S, FORGETS_S, DAY_S = 600.0, 3600.0, 86_400.0
TOLD = ("faster", "slower")


IN_TURN = {"A B A B": [0, 1], "A B B A": [0, 1, 1, 0]}


def sides_of(rng, counts, session_sd, planted, order):
    """Return two sides of runs; see the head of this file for `order`."""
    if order in IN_TURN:
        sides, levels = (IN_TURN[order] * sum(counts))[: sum(counts)], wandering(rng, sum(counts), session_sd)
    else:
        sides, levels = [0] * counts[0] + [1] * counts[1], np.repeat(rng.normal(0, session_sd, 2), counts)
    levels = levels + rng.normal(0, IN_SESSION_SD, len(sides))
    return sides_in_time(sides, levels, planted, DAY_S if order == "as if independent" else RUN_S)


def wandering(rng, count, sd):
    """Return a machine's level at `count` times."""
    levels, stays = [rng.normal(0, sd)], math.exp(-RUN_S / FORGETS_S)
    while len(levels) < count:
        levels.append(stays * levels[-1] + rng.normal(0, sd * math.sqrt(1 - stays**2)))
    return np.array(levels)


def sides_in_time(sides, levels, planted, every_s):
    """Return the runs of both sides, each of which begins so long after the one before."""
    runs = ([], [])
    for number, (side, level) in enumerate(zip(sides, levels, strict=True)):
        log, begin_s = float(level) + (planted if side == 0 else 0.0), number * every_s
        runs[side].append(RunLevel(log, IN_SESSION_SD / 2, 8, begin_s=begin_s, end_s=begin_s + RUN_S / 2))
    return runs


def drift(trials):
    """Yield the rows of the table of drifts."""
    yield "drift a run", "runs", "order", "called different, truly alike"
    for per_run in (0.005, 0.01):
        for count in (8, 12):
            for order, turns in IN_TURN.items():
                rng = np.random.default_rng(5)
                different = 0
                for _ in range(trials):
                    levels = per_run * np.arange(count) + rng.normal(0, 0.005, count)
                    sides = sides_in_time((turns * count)[:count], levels, 0.0, RUN_S)
                    different += judge([over_runs(*sides, same_hardware=True)])[0].verdict in TOLD
                yield f"{100 * per_run:.1f} %", count, order, share(different, trials)


def sessions(trials):
    """Yield the rows of the first table."""
    yield "session SD", "runs", "order", "called different, truly alike", "planted 10 % found"
    cases = [((1, 1), False), ((3, 1), False), ((3, 3), False), ((5, 5), False)]
    cases += [((3, 3), True), ((4, 4), True), ((5, 5), True)]
    for session_sd in SESSION_SDS:
        for counts, is_in_turn in cases:
            for order in IN_TURN if is_in_turn else ("as if independent", "one after the other"):
                rates = []
                for planted in (0.0, math.log(1.1)):
                    rng = np.random.default_rng(7)
                    judged = [
                        judge([over_runs(*sides_of(rng, counts, session_sd, planted, order), same_hardware=True)])[0]
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
            false += any(versus.verdict == "same" for versus in judge([over(of_pair) for of_pair in logs]))
        yield pairs, share(false, trials)


def small(trials):
    """Yield the rows of the third table."""
    yield "true difference", "rounds, SD", "slower", "faster", "same", "95 % interval holds it"
    for true_pct in (0.0, 0.5, 1.0, 2.0):
        for rounds, sd in ((8, 0.012), (40, 0.023), (90, 0.023)):
            rng = np.random.default_rng(rounds)
            truth = math.log1p(true_pct / 100)
            judged = [judge([over(rng.normal(truth, sd, rounds))])[0] for _ in range(trials)]
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
                pairs = pairs or family_of(names, 0, lambda name, base, logs=logs: over(logs[name] - logs[base]))
                judged = dict(zip(pairs, judge([over(logs[a] - logs[b]) for a, b in pairs]), strict=True))
                planted = judged.get((0, cells - 1)) or judged[cells - 1, 0].inverted()
                hits += planted.verdict == "faster"
                alarmed += any(versus.verdict in TOLD for (a, b), versus in judged.items() if cells - 1 not in (a, b))
            yield cells, judged_pairs, share(hits, trials), share(alarmed, trials)


def fastest(trials):
    """Yield the rows of the table of sentences."""
    yield "like cells", "a fastest is named"
    for count in (3, 5, 10):
        rng = np.random.default_rng(count)
        named = 0
        for _ in range(trials):
            logs = dict(enumerate(rng.normal(0, 0.023 / math.sqrt(2), (count, 8))))
            pairs = SimulatedFamily(logs)
            names = sorted(logs, key=lambda name, logs=logs: logs[name].mean())
            named += leaders_of(names, pairs, {name: name for name in names}) is not None
        yield count, share(named, trials)


class SimulatedFamily(Family):
    """Cells whose rounds are given."""

    def __init__(self, logs):
        super().__init__(METRICS["step_ns"], dict.fromkeys(logs, ()), 0)
        self._logs = logs

    def estimate(self, key, other):
        return over(self._logs[key] - self._logs[other])


def levels(trials):
    """Yield the rows of the fifth table."""
    yield "starts", "interval holds the mean", "no slow start was seen"
    for starts in (3, 4, 8, 16, 32):
        rng = np.random.default_rng(starts)
        is_slow = rng.random((trials, starts)) < 0.1
        logs = rng.normal(0, 0.01, (trials, starts)) + is_slow * math.log(1.3)
        mean = 0.1 * math.log(1.3)
        held = sum(low <= mean <= high for low, high in (over(row).log_interval() for row in logs))
        yield starts, share(held, trials), share(int((~is_slow.any(axis=1)).sum()), trials)


ALLOWED_PCT = 5.0


def limit_in(rng, truths_pct, run_sd, rounds=8, sd=0.012):
    """Return what the gate says of one simulated run."""
    names = [f"row {number}" for number in range(len(truths_pct))]
    known = []
    for truth_pct in truths_pct:
        level = math.log1p(truth_pct / 100) + rng.normal(0, run_sd)
        known.append(over(rng.normal(level, sd, rounds)))
    limit, allowed = Limit([], [], [], {}, {}, {}), math.log1p(ALLOWED_PCT / 100)
    for name, estimate, shown in zip(names, known, slower_by_more_than(known, ALLOWED_PCT), strict=True):
        getattr(limit, shown).append(name)
        if shown == "unresolved":
            needed = rounds_for(estimate, abs(allowed - estimate.mean_log), SAME_LEVEL)
            limit.more_rounds.update({name: max(1, needed - estimate.count)} if needed is not None else {})
    return limit


def gate(trials):
    """Yield the rows of the table of the gate."""
    yield "rows", "truth", "run SD", "fails, one run", "confirmed", "unresolved, one run", "confirmed", "runs in all"
    cases = [(rows, truth_pct, alike) for rows in (1, 10) for truth_pct, alike in ((0, 0), (ALLOWED_PCT, ALLOWED_PCT))]
    cases += [(rows, truth_pct, 0) for rows in (1, 10) for truth_pct in (6, 7, 8, 10)]
    for run_sd in (0.0, 0.006):
        for rows, truth_pct, others_pct in cases:
            rng = np.random.default_rng(11)
            codes, runs = [], 0
            for _ in range(trials):
                truths_pct = [truth_pct, *[others_pct] * (rows - 1)]
                first = limit_in(rng, truths_pct, run_sd)
                names = first.open_rows(8)
                second = limit_in(rng, truths_pct, run_sd) if names else None
                both = first if second is None else first.confirmed_by(second, names)
                runs += 1 + (second is not None)
                codes.append((first.exit_code, both.exit_code))
            counts = [sum(pair[which] == code for pair in codes) for code in (1, 5) for which in (0, 1)]
            says = f"{truth_pct:g} %" if rows == 1 or truth_pct == others_pct else f"one {truth_pct:g} %, others alike"
            yield (
                rows,
                says,
                f"{100 * run_sd:.1f} %",
                *(share(count, trials) for count in counts),
                f"{runs / trials:.2f}",
            )


TABLES = {
    "sessions": sessions, "drift": drift, "same": same, "small": small, "families": families, "fastest": fastest,
    "gate": gate, "levels": levels,
}  # fmt: skip


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
