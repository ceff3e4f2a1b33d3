"""Runs beside neighbours against quiet ones: what each rule says of them, and how much longer they take.

    python tests/bench/bench_neighbours.py [--runs 4] [--kinds one,two,bursts] [--rounds 4] [--backend torch,jax]
    python tests/bench/bench_neighbours.py --aa [--runs 4] [--rounds 12] [--backend jax] [--workload mlp] [--task train]
    python tests/bench/bench_neighbours.py [--aa] --from bench/neighbours       print what is there, measure nothing

Each of N times `kit run` measures the suite quietly, then beside a neighbour of each kind (`neighbours.py`), whose seed
is the number of the time. A profile that is in --folder is not measured again, so an interrupted bench goes on.

First table, rounds of all runs of a kind together:
    rule         `rounds-4`: cycles that others disturbed are left out; `rounds-4-all-cycles`: all cycles count
    ratio        of steps, with its 95 % interval over rounds
    SD           of the round's log-ratio over rounds, with its 95 % interval (chi-squared)
    cycles       that count, of those that ran

Second table, run by run, of pairs that all quiet rounds together call different, by more than 10 %:
    same         runs with that verdict, with the exact binomial interval; `opposite`: with the opposite one
    holds        runs whose 95 % interval holds the quiet ratio
    width        of the logarithm's 95 % interval over the median width of the quiet runs: median, and runs of at most 2
    A quiet run is held against the rounds of all other quiet runs, and shows what a machine does by itself. One of
    whose cycles more than 10 % do not count was not quiet: it is named, and not taken.

Third table: wall time over the median of quiet runs, runs of at most 2, and CPUs that the neighbour kept busy.

With --aa the cells are four like variants of each cell. A decision is the verdict of k = 3 rounds that count, of the
pairs a, b and c, d; no round and no variant is in two decisions of one cell. "Faster" and "slower" are false alarms.
"""

from __future__ import annotations

import json
import math
import re
import signal
import statistics
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from bench_self import share, spread
from measuring import Interval, printed
from neighbours import KINDS, Neighbour, measure, wall_path

from kit.compare.metrics import METRICS
from kit.compare.notes import read_run as run_of
from kit.compare.ratios import log_ratios
from kit.compare.verdicts import Family
from kit.profile.store import read_profile
from kit.stats.estimate import RULE, RULE_OF_ALL_CYCLES, Estimate, judge, over

STEP = METRICS["step_ns"]

QUIET = "quiet"
RULES = (RULE, RULE_OF_ALL_CYCLES)
DIFFERENT = math.log(1.10)
WIDER_MOST = LONGER_MOST = 2.0
# Of the cycles of a quiet run: the system's own work disturbs a few per cent.
LEFT_OUT_MOST = 0.10
VARIANTS = "abcd"
DECISION_ROUNDS = 3
PROFILE_NAME = re.compile(rf"(aa-)?({'|'.join((QUIET, *KINDS))})-(\d+)\.json")


class Measured(NamedTuple):
    """A run that is on disk."""

    name: str  # of its file
    kind: str
    profile: object
    wall_s: float | None  # null: nobody noted it
    neighbour_cpus: float  # that its neighbour kept busy, in the mean


class PairResult(NamedTuple):
    """What a rule says of one pair of cells in one run."""

    logs: list[float]  # log-ratio of each round that counts
    versus: Estimate
    counted: int  # cycles
    ran: int


def read_run(path, kind):
    """Return a run; of a profile without a note its wall time is not known."""
    noted = json.loads(wall_path(path).read_text()) if wall_path(path).exists() else {}
    wall_s = noted.get("wall_s")
    return Measured(
        path.name, kind, read_profile(path), wall_s, noted.get("neighbour_cpu_s", 0.0) / (wall_s or math.inf)
    )


def read_runs(folder, *, is_aa):
    """Return the runs of a folder, quiet ones first, then by kind and number."""
    known = [(match, path) for path in folder.glob("*.json") if (match := PROFILE_NAME.fullmatch(path.name))]
    order = [QUIET, *KINDS]
    known.sort(key=lambda entry: (order.index(entry[0][2]), int(entry[0][3])))
    return [read_run(path, match[2]) for match, path in known if bool(match[1]) == is_aa]


def pair_results(profile, rule):
    """Return what a rule says of each pair: group's key -> title of the pair -> result."""
    results = {}
    for group in run_of("", profile, all_cycles=rule == RULE_OF_ALL_CYCLES).groups:
        counted = group.rounds
        known = [of_round for part in group.parts for of_round in counted.by_group.get(part.key, {}).values()]
        ran = sum(of_round.ran for of_round in known)
        clean = sum(of_round.clean for of_round in known if of_round.counts)
        # Where no round counts the kit shows all cycles: they are no clean ones.
        is_lost = any(part.key in counted.disturbed for part in group.parts)
        samples, of_group = group.samples, results.setdefault(group.key, {})
        family = Family(STEP, {key: [sample] for key, sample in samples.items()}, group.baseline)
        for (key, sample), (other, of_other) in combinations(samples.items(), 2):
            title = f"{sample.cell.workload} {sample.cell.task} {sample.name} ÷ {of_other.name}"
            logs = [] if is_lost else list(log_ratios(STEP, sample, of_other).values())
            of_group[title] = PairResult(logs, family.versus(key, other), ran if counted.rule != RULE else clean, ran)
    return results


def left_out_share(results):
    """Return which share of a run's cycles do not count."""
    known = [next(iter(of_group.values())) for of_group in results.values() if of_group]
    return 1 - sum(result.counted for result in known) / max(1, sum(result.ran for result in known))


def together(results: Iterable[dict]):
    """Return the log-ratios and the cycles of several runs: group's key -> pair -> (logs, counted, ran)."""
    sums = {}
    for of_run in results:
        for key, of_group in of_run.items():
            for title, result in of_group.items():
                logs, counted, ran = sums.setdefault(key, {}).get(title, ([], 0, 0))
                sums[key][title] = logs + result.logs, counted + result.counted, ran + result.ran
    return sums


def print_ratios(by_kind):
    """Print the first table; `by_kind`: kind -> rule -> results of each run."""
    rows = [("pair", "beside", "rule", "rounds", "ratio [95 %]", "SD over rounds [95 %]", "cycles")]
    sums = {(kind, rule): together(results[rule]) for kind, results in by_kind.items() for rule in RULES}
    titles = dict.fromkeys((key, title) for of in sums.values() for key in of for title in of[key])
    for key, title in titles:
        for (kind, rule), of in sums.items():
            logs, counted, ran = of.get(key, {}).get(title, ([], 0, 0))
            known = over(logs)
            ratio = "–" if not known.has_interval else Interval(known.ratio, *known.interval())
            sd = "–" if not known.has_interval else spread(logs)
            rows.append((title, kind, rule, len(logs), ratio, sd, f"{counted} of {ran}"))
    printed(rows)


def references(quiet_results):
    """Return the pairs that quiet rounds call different by more than 10 %: (group's key, title) -> what they say."""
    known = {}
    for key, of_group in together(quiet_results).items():
        family = judge([over(logs) for logs, _, _ in of_group.values()])
        for title, versus in zip(of_group, family, strict=True):
            if versus.verdict in ("faster", "slower") and abs(versus.mean_log) > DIFFERENT:
                known[key, title] = versus
    return known


class Agreement(NamedTuple):
    """How one run agrees with the quiet ones on one pair."""

    title: str
    verdict: str
    expected: str
    holds: bool
    width: float | None  # over that of the quiet runs


def half_width(versus):
    """Return half the width of the 95 % interval of the logarithm; None without an interval."""
    return versus.half_width(0.95) if versus.has_interval else None


def agreements(by_kind, kind, rule):
    """Return the agreement of each run of a kind on each pair that is different."""
    quiet = by_kind.get(QUIET, {}).get(RULE, [])
    entries = []
    for number, of_run in enumerate(by_kind[kind][rule]):
        others = [of_other for place, of_other in enumerate(quiet) if kind != QUIET or place != number]
        for (key, title), reference in references(others).items():
            result = of_run.get(key, {}).get(title)
            if result is None:
                continue
            widths = [half_width(of_quiet[key][title].versus) for of_quiet in others if title in of_quiet.get(key, {})]
            usual, width = statistics.median([known for known in widths if known] or [0]), half_width(result.versus)
            low, high = result.versus.log_interval() if width is not None else (math.inf, -math.inf)
            holds = low <= reference.mean_log <= high
            ratio = width / usual if width is not None and usual else None
            entries.append(Agreement(title, result.versus.verdict, reference.verdict, holds, ratio))
    return entries


def agreement_row(*labels, entries):
    """Return a row of the second table."""
    same = share(sum(entry.verdict == entry.expected for entry in entries), len(entries))
    opposite = sum(
        entry.verdict == {"faster": "slower", "slower": "faster"}.get(entry.expected, entry.expected)
        for entry in entries
    )
    holds = share(sum(entry.holds for entry in entries), len(entries))
    return *labels, same, opposite, holds, *at_most([entry.width for entry in entries], WIDER_MOST)


def at_most(ratios, limit):
    """Return the median of the ratios that are known, and the share of all that are at most `limit`."""
    known = [ratio for ratio in ratios if ratio is not None]
    return f"{statistics.median(known):.2f}" if known else "–", share(sum(r <= limit for r in known), len(ratios))


def print_agreement(by_kind):
    """Print the second table: of each pair, then of each kind."""
    entries = {(kind, rule): agreements(by_kind, kind, rule) for kind in by_kind for rule in RULES}
    rows = [("pair", "beside", "rule", "same", "opposite", "holds", "width", f"width ≤ {WIDER_MOST:g}")]
    busy = {rule: [entry for kind in by_kind if kind != QUIET for entry in entries[kind, rule]] for rule in RULES}
    for title in dict.fromkeys(entry.title for of_rule in busy.values() for entry in of_rule):
        for rule in RULES:
            of_pair = [entry for entry in busy[rule] if entry.title == title]
            rows.append(agreement_row(title, "any", rule, entries=of_pair))
    for rule in RULES:
        rows.append(agreement_row("all pairs", "any", rule, entries=busy[rule]))
    rows += [agreement_row("all pairs", *of, entries=known) for of, known in entries.items()]
    printed(rows)


def print_durations(runs):
    """Print the third table."""
    quiet_s = [run.wall_s for run in runs if run.kind == QUIET and run.wall_s is not None]
    usual_s = statistics.median(quiet_s) if quiet_s else math.nan
    rows = [("wall time", "runs", "median s", "over quiet", "longest", f"≤ {LONGER_MOST:g}", "busy CPUs")]
    for kind in dict.fromkeys(run.kind for run in runs):
        walls_s = [run.wall_s for run in runs if run.kind == kind and run.wall_s is not None]
        ratios = [wall_s / usual_s for wall_s in walls_s]
        if walls_s:
            longest = f"{max(ratios):.2f}"
            busy = f"{statistics.mean(run.neighbour_cpus for run in runs if run.kind == kind):.2f}"
            median, within = at_most(ratios, LONGER_MOST)
            rows.append((kind, len(walls_s), f"{statistics.median(walls_s):.0f}", median, longest, within, busy))
    printed(rows)


def decisions(profile, rule):
    """Yield the log-ratios of each decision between like variants."""
    for group in run_of("", profile, all_cycles=rule == RULE_OF_ALL_CYCLES).groups:
        if any(part.key in group.rounds.disturbed for part in group.parts):
            continue
        samples = list(group.samples.values())
        for sample, other in zip(samples[::2], samples[1::2], strict=False):
            logs = list(log_ratios(STEP, sample, other).values())
            for at in range(0, len(logs) - DECISION_ROUNDS + 1, DECISION_ROUNDS):
                yield logs[at : at + DECISION_ROUNDS]


def print_false_alarms(runs):
    """Print the table of --aa."""
    rows = [("A/A beside", "rule", "runs", "false alarms", "interval holds 1")]
    kinds = list(dict.fromkeys(run.kind for run in runs))
    for kinds_taken in ([[kind] for kind in kinds] + [kinds]) if len(kinds) > 1 else [kinds]:
        of_kind = [run for run in runs if run.kind in kinds_taken]
        for rule in RULES:
            judged = [judge([over(logs)])[0] for run in of_kind for logs in decisions(run.profile, rule)]
            alarms = share(sum(versus.verdict in ("faster", "slower") for versus in judged), len(judged))
            holds = share(sum(versus.low <= 1 <= versus.high for versus in judged), len(judged))
            rows.append((" or ".join(kinds_taken), rule, len(of_kind), alarms, holds))
    printed(rows)


def options():
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4, help="quiet ones, and of each kind (default: 4)")
    parser.add_argument("--kinds", default="one,two,bursts", help="of neighbours (default: one,two,bursts)")
    parser.add_argument("--suite", default="quick")
    for name in ("rounds", "backend", "workload", "task"):
        parser.add_argument(f"--{name}", help="as of `kit run`")
    parser.add_argument("--data", default="synthetic")
    parser.add_argument("--folder", type=Path, default=Path("bench/neighbours"))
    parser.add_argument("--from", dest="judged", type=Path, metavar="FOLDER", help="print what this folder has")
    parser.add_argument("--aa", action="store_true", help="like variants instead of frameworks")
    arguments = parser.parse_args()
    arguments.kinds = arguments.kinds.split(",")
    if unknown := set(arguments.kinds) - set(KINDS):
        parser.error(f"--kinds: no {', '.join(sorted(unknown))}; choose from {', '.join(KINDS)}")
    return arguments


def measure_all(arguments):
    """Measure the runs that are not in the folder."""
    words = [arguments.suite, "--data", arguments.data]
    for name in ("rounds", "backend", "workload", "task"):
        if getattr(arguments, name) is not None:
            words += [f"--{name}", getattr(arguments, name)]
    if arguments.aa:
        words += [word for name in VARIANTS for word in ("--variant", f"{name}:")]
    for number in range(arguments.runs):
        for kind in arguments.kinds if arguments.aa else (QUIET, *arguments.kinds):
            path = arguments.folder / f"{'aa-' if arguments.aa else ''}{kind}-{number}.json"
            measure(path, words, None if kind == QUIET else Neighbour(kind, number))


def main():
    arguments = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments.judged is None:
        measure_all(arguments)
    runs = read_runs(arguments.judged or arguments.folder, is_aa=arguments.aa)
    if arguments.aa:
        print_false_alarms(runs)
        return
    by_kind, taken = {}, []
    for run in runs:
        results = {rule: pair_results(run.profile, rule) for rule in RULES}
        if run.kind == QUIET and (left_out := left_out_share(results[RULE])) > LEFT_OUT_MOST:
            print(f"{run.name} is not taken: it was not quiet, {100 * left_out:.0f} % of its cycles do not count\n")
            continue
        taken.append(run)
        for rule in RULES:
            by_kind.setdefault(run.kind, {}).setdefault(rule, []).append(results[rule])
    print_ratios(by_kind)
    print()
    if QUIET not in by_kind:
        sys.exit("no quiet run is there to compare with")
    print_agreement(by_kind)
    print()
    print_durations(taken)


if __name__ == "__main__":
    main()
