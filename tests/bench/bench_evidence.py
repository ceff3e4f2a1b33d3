"""The evidence for the rule in force: like cells, planted differences, and sessions hours apart; in pieces that resume.

    python tests/bench/bench_evidence.py [--minutes 60] [--folder bench/evidence]    measure further pieces, then judge
    python tests/bench/bench_evidence.py --minutes 0                                 judge what is known
    taskset -c 1 python tests/bench/bench_evidence.py --part 1/2                     one of two that run at once
    python tests/bench/bench_evidence.py --beside bursts                             further pieces beside a neighbour
    python tests/bench/bench_evidence.py --minutes 0 --before                        judge what was measured until then

A piece is one `kit run` of some minutes: eight rounds of mlp at three batch sizes, train and infer, in one framework on
one thread, so that another program has another CPU to run on; a round has the four cycles that it has in `quick`.
Pieces follow each other in a fixed order until the minutes are over; a piece that is measured is not measured again.
What a verdict is made of is kept of each piece as one line of KEPT, so that the campaign goes on at another time and on
another machine, and anyone can judge it again: another rule judges the same lines otherwise.

    aa          the variants a, b, c, d are alike. Decisions are of disjoint rounds (k at a time) and the disjoint
                pairs a, b and c, d: no block is in two decisions of one k
    planted     of a base, and of variants whose steps are delayed by 1, 2, 3 and 5 % (the wait stamps itself)
    ten         base and 1 % alone, train, for ten minutes, as `kit run` measures two variants

    false alarm       a decision that says "faster" or "slower"; with the exact binomial interval (Clopper and Pearson)
    "same"            decisions that say so: of like variants they are right
    holds             decisions whose 95 % interval holds the truth: 1, or what was injected
    smallest          the difference that nine of ten runs so long find, by the spread of rounds (bench_smallest)
    lag 1             correlation of the log-ratio of a round with that of the next in its run, pooled over runs
    sessions          runs of one cell against each other, as `kit compare` judges single runs at different times
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
import time
from datetime import datetime
from itertools import combinations, count
from pathlib import Path

import numpy as np
from bench_self import share, spread
from bench_smallest import SECONDS, cells_of
from measuring import printed
from neighbours import KINDS as NEIGHBOURS
from neighbours import Neighbour, measure, wall_path

from kit.compare.metrics import METRICS, value
from kit.compare.notes import read_run
from kit.compare.ratios import log_ratios
from kit.profile.store import read_profile
from kit.stats.estimate import RULE, judge, over
from kit.stats.sessions import SESSIONS_FOR_SPREAD, RunLevel, over_runs

STEP = METRICS["step_ns"]

KEPT = Path(__file__).parents[2] / "profiles/evidence/rounds.jsonl"
FRAMEWORKS = ("torch", "jax", "tensorflow")
KINDS = (("aa",), ("planted",), ("aa",), ("ten",))
DECISION_ROUNDS = (3, 4, 8)
PLANTED_PCT = (1, 2, 3, 5)
SUITE = """
name = "{name}"
title = "Evidence"
compare = ["variant"]
[cells]
workloads = ["mlp"]
backends = ["{backend}"]
tasks = [{tasks}]
batches = [{batches}]
threads = [1]
[measure]
rounds = 8
{cycles}
share = ["task", "batch"]
"""
LIKE_PAIRS = ("a/b", "c/d")
VARIANTS = {
    "aa": dict.fromkeys("abcd", 0),
    "planted": {"base": 0} | {f"plus-{pct}": pct for pct in PLANTED_PCT},
    "ten": {"base": 0, "plus-1": 1},
}


def suite_of(kind, backend):
    """Return the suite file of a piece."""
    tasks, batches = ('"train"', "128") if kind == "ten" else ('"train", "infer"', "64, 128, 256")
    cycles = "" if kind == "ten" else "cycles = 4"
    tables = [f"[variants.{name}]\nslowdown_pct = {pct}.0\n" for name, pct in VARIANTS[kind].items()]
    return SUITE.format(name=kind, backend=backend, tasks=tasks, batches=batches, cycles=cycles) + "\n".join(tables)


def pieces():
    """Yield the pieces without end: number, kind, framework."""
    for number in count():
        for kind in KINDS[number % len(KINDS)]:
            for backend in FRAMEWORKS:
                yield number, kind, backend


def measure_pieces(folder, minutes, part, beside):
    """Measure the pieces of a part that are not in KEPT until the minutes are over; what has begun is finished."""
    done = {line["piece"] for line in kept() if "seconds" in line}  # not those of before
    end_s = time.monotonic() + 60 * minutes
    folder.mkdir(parents=True, exist_ok=True)
    of_part, parts = map(int, part.split("/"))
    for place, (number, kind, backend) in enumerate(pieces()):
        if time.monotonic() >= end_s:
            return
        name = f"{number:03d}-{kind}-{backend}" + (f"-{beside}" if beside else "")
        if name in done or place % parts != of_part:
            continue
        suite = folder / f"{kind}-{backend}.toml"
        suite.write_text(suite_of(kind, backend))
        words = [str(suite), "--data", "synthetic"]
        words += ["--budget", "600", "--until-precision", "0.1"] if kind == "ten" else []
        path = folder / f"{name}.json"
        measure(path, words, Neighbour(beside, seed=place) if beside else None)
        seconds = json.loads(wall_path(path).read_text())["wall_s"]
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        line = {**reduced(name, read_profile(path)), "seconds": round(seconds, 1)}
        with KEPT.open("a") as lines:
            lines.write(json.dumps(line, separators=(",", ":")) + "\n")


def reduced(name, profile):
    """Return what verdicts on a piece are made of: log-ratios of each group's pairs, and levels of its cells."""
    groups = []
    for group in read_run(name, profile).groups:
        runs, counted = group.samples, group.rounds
        names = {key: sample.name.removeprefix("variant ") for key, sample in runs.items()}
        cell = next(iter(runs.values())).cell
        known = [known for part in group.parts for known in counted.by_group.get(part.key, {}).values()]
        groups.append(
            {
                "cell": f"{cell.backend} {cell.workload} {cell.task}",
                "batch": cell.batch,
                "disturbed": any(part.key in counted.disturbed for part in group.parts),
                "cycles": [sum(of_round.clean for of_round in known), sum(of_round.ran for of_round in known)],
                "pairs": {
                    f"{names[key]}/{names[other]}": rounded(log_ratios(STEP, runs[key], runs[other]).values())
                    for key, other in combinations(runs, 2)
                    if f"{names[key]}/{names[other]}" in LIKE_PAIRS or names[key] == "base"
                },
                "injected": {names[key]: value(run, "injected_ratio") for key, run in runs.items()},
                "levels": {
                    names[key]: [value(run, "raw_step_ns"), value(run, "level_se"), value(run, "rounds")]
                    for key, run in runs.items()
                },
            }
        )
    identity = profile.identity
    return {
        "piece": name,
        "created": profile.created,
        "kit": profile.kit.version,
        "cpu": identity.cpu_model,
        "hardware": identity.hardware_sha256[:12],
        "groups": groups,
    }


def rounded(logs):
    return [round(log, 6) for log in logs]


def kept():
    """Return the lines of the pieces that were measured so far."""
    return [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


def beside_of(line):
    """Return the kind of neighbour beside a piece; empty: there was none."""
    return "-".join(line["piece"].split("-")[3:])


def groups_of(lines, kind):
    """Yield the groups of the pieces of a kind in which a round counts."""
    for line in lines:
        if line["piece"].split("-")[1] == kind:
            yield from (group for group in line["groups"] if not group["disturbed"])


def disjoint(logs, k):
    """Return the rounds, k by k; what is left over is in none."""
    return [logs[at : at + k] for at in range(0, len(logs) - k + 1, k)]


def judged(logs):
    return judge([over(logs)])[0]


def holds(versus, truth_log=0.0):
    return math.log(versus.low) <= truth_log <= math.log(versus.high)


def print_false_alarms(lines):
    rows = [("like variants", "k", "false alarms", '"same"', "holds 1")]
    cells = dict.fromkeys(group["cell"] for group in groups_of(lines, "aa"))
    beside = sorted({beside_of(line) for line in lines} - {""})
    chosen = [(cell, lines, cell) for cell in cells] + [("all", lines, "")]
    chosen += [(f"all beside {kind}", [line for line in lines if beside_of(line) == kind], "") for kind in beside]
    for title, chosen_lines, cell in chosen:
        for k in DECISION_ROUNDS:
            decisions = [
                judged(logs)
                for group in groups_of(chosen_lines, "aa")
                if cell in (group["cell"], "")
                for pair in LIKE_PAIRS
                for logs in disjoint(group["pairs"].get(pair, []), k)
            ]
            alarms = sum(versus.verdict in ("faster", "slower") for versus in decisions)
            same = sum(versus.verdict == "same" for versus in decisions)
            counts = (alarms, same, sum(map(holds, decisions)))
            rows.append((title, k, *(share(count, len(decisions)) for count in counts)))
    printed(rows)


def print_spread(lines):
    rows = [("like variants", "rounds", "SD over rounds [95 %]", "lag 1")]
    for cell in dict.fromkeys(group["cell"] for group in groups_of(lines, "aa")):
        runs = [
            np.asarray(group["pairs"].get(pair, [])) - np.mean(group["pairs"].get(pair) or [0])
            for group in groups_of(lines, "aa")
            if group["cell"] == cell
            for pair in LIKE_PAIRS
        ]
        logs = np.concatenate(runs)
        lagged = sum(float(np.dot(run[:-1], run[1:])) for run in runs) / max(float(np.dot(logs, logs)), 1e-300)
        rows.append((cell, logs.size, spread(list(logs)), f"{lagged:+.2f} ± {2 / math.sqrt(logs.size):.2f}"))
    printed(rows)


def print_planted(lines, kind, title):
    rows = [(title, "runs", "rounds", "injected", "slower", "faster", "holds it", "±")]
    for pct in PLANTED_PCT:
        name, rows_found = f"plus-{pct}", []
        for group in groups_of(lines, kind):
            logs = [-log for log in group["pairs"].get(f"base/{name}", [])]
            if len(logs) >= min(DECISION_ROUNDS):
                rows_found.append((judged(logs), math.log(group["injected"][name]), len(logs)))
        if not rows_found:
            continue
        rows.append(
            (
                f"{pct} %",
                len(rows_found),
                f"{statistics.median(rounds for _, _, rounds in rows_found):g}",
                f"{100 * math.expm1(statistics.mean(truth for _, truth, _ in rows_found)):.2f} %",
                share(sum(versus.verdict == "slower" for versus, _, _ in rows_found), len(rows_found)),
                sum(versus.verdict == "faster" for versus, _, _ in rows_found),
                share(sum(holds(versus, truth) for versus, truth, _ in rows_found), len(rows_found)),
                f"{100 * statistics.median(math.sqrt(row.high / row.low) - 1 for row, _, _ in rows_found):.1f} %",
            )
        )
    printed(rows)


def print_sessions(lines):
    rows = [("runs of one cell and machine", "runs", "hours", "SD between runs [95 %]", "called different")]
    cells, verdicts = {}, []
    for line in lines:
        for group in line["groups"]:
            level = next(iter(group["levels"].values()))
            if not group["disturbed"] and level[0]:
                cell = f"{group['cell']} {group['batch']}"
                cells.setdefault((cell, line["hardware"]), []).append((line["created"], level))
    for (cell, hardware), runs in cells.items():
        logs = [math.log(step_ns) for _, (step_ns, _, _) in runs]
        if len(logs) < SESSIONS_FOR_SPREAD:
            continue
        begun = [datetime.fromisoformat(created) for created, _ in runs]
        levels = [RunLevel(math.log(step_ns), se, rounds) for _, (step_ns, se, rounds) in runs]
        differ = [
            judge([over_runs([first], [second], same_hardware=True)])[0].verdict in ("faster", "slower")
            for first, second in combinations(levels, 2)
        ]
        verdicts += differ
        hours = (max(begun) - min(begun)).total_seconds() / 3600
        rows.append((f"{cell} · {hardware}", len(logs), f"{hours:.1f}", spread(logs), share(sum(differ), len(differ))))
    if verdicts:
        rows.append(("all", "", "", "", share(sum(verdicts), len(verdicts))))
    printed(rows)


def print_smallest(lines):
    rows = [("smallest found in 9 of 10", "rounds", "s a round", "SD", *(f"{seconds} s" for seconds in SECONDS))]
    for line in lines:
        for group in groups_of([line], "ten"):
            logs = group["pairs"]["base/plus-1"]
            beside = beside_of(line)
            name = f"{line['cpu']}, {group['cell']}" + (f", beside {beside}" if beside else "")
            rows.append((name, len(logs), *cells_of(statistics.stdev(logs), line["seconds"] / len(logs))))
    printed(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="no piece begins later (default: 60)")
    parser.add_argument("--folder", type=Path, default=Path("bench/evidence"), help="of the profiles")
    parser.add_argument("--part", default="0/1", help="which of how many that run at once, such as 1/2")
    parser.add_argument("--beside", choices=NEIGHBOURS, help="a neighbour that is there all the time")
    parser.add_argument("--before", action="store_true", help="judge pieces whose turns were blocks (2026-11-27)")
    arguments = parser.parse_args()
    if not re.fullmatch(r"\d+/[1-9]\d*", arguments.part):
        parser.error("--part: give two numbers, such as 1/2")
    if arguments.minutes > 0:
        measure_pieces(arguments.folder, arguments.minutes, arguments.part, arguments.beside)
    lines = [line for line in kept() if ("seconds" in line) is not arguments.before]
    if not lines:
        sys.exit(f"no piece is known: {KEPT} is not there; give --minutes")
    lost = sum(group["disturbed"] for line in lines for group in line["groups"])
    clean, ran = (sum(group["cycles"][at] for line in lines for group in line["groups"]) for at in (0, 1))
    print(f"rule {RULE}; {len(lines)} runs; {clean} of {ran} cycles count; {lost} groups without a round that counts\n")
    print_false_alarms(lines)
    print()
    print_spread(lines)
    for kind, title in (("planted", "planted"), ("ten", "planted, ten minutes")):
        print()
        print_planted(lines, kind, title)
    if not arguments.before:
        print()
        print_smallest(lines)
    print()
    print_sessions(lines)


if __name__ == "__main__":
    main()
