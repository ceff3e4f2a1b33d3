"""Two builds of the kit against each other: how narrow their intervals are after the same time, and what they find.

    python tests/bench/bench_builds.py --old KIT [--new KIT] [--what cells] [--seconds 240] [--pairs 6] [--lines FILE]
    python tests/bench/bench_builds.py [--lines FILE] --pairs 0                        judge what is known

`--old` and `--new` are the commands `kit` of two environments; new is this one's. The builds alternate, run by run, old
first in every second pair, on the same machine. Each run gets as many rounds as fit into `--seconds`, by what the run
of its build before took; the first run of each has three rounds and only shows that. A run is kept as one line of FILE,
so that the comparison goes on at another time; anyone can judge the lines again. FILE is KEPT, where old is 8e0dbbc.

    cells     the twelve cells of `quick`: half-widths of the 95 % intervals of the differences between frameworks
    planted   base, a like variant, and two whose steps are delayed, by 1 and 3 % or by 2 and 5 %, mlp on one thread:
              half-widths, false alarms on the like one, delays found, and intervals that hold what was injected

Both builds' rounds are judged by the rule of this one, pair by pair: no family makes a test stricter.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from itertools import chain, combinations
from pathlib import Path

from bench_self import share
from measuring import Interval, printed

from kit.compare.metrics import METRICS, value
from kit.compare.notes import read_run
from kit.compare.ratios import log_ratios
from kit.profile.store import read_profile
from kit.stats.estimate import ROUNDS_FOR_VERDICT, judge, over

STEP = METRICS["step_ns"]
KEPT = Path(__file__).parents[2] / "profiles/evidence/builds.jsonl"
# Four variants take turns in one group: the delays of one run, and of the next.
PLANTED_PCT = ((1, 3), (2, 5))
FRAMEWORKS = ("torch", "jax", "tensorflow")
# One more round is begun where most of it fits.
MOST_OF_A_ROUND = 0.5
PLANTED = """
name = "planted"
title = "Planted differences"
compare = ["variant"]
[cells]
workloads = ["mlp"]
backends = ["{backend}"]
tasks = ["train", "infer"]
batches = [128]
threads = [1]
[measure]
share = ["task"]
[variants.base]
[variants.like]
"""


def suite_of(what: str, number: int, folder: Path) -> tuple[str, str]:
    """Return the suite of a pair, a name or a file that is written here, and of what kind it is: a round's length."""
    if what == "cells":
        return "quick", what
    backend = FRAMEWORKS[number // len(PLANTED_PCT) % len(FRAMEWORKS)]
    planted_pct = PLANTED_PCT[number % len(PLANTED_PCT)]
    path = folder / f"planted-{backend}-{max(planted_pct)}.toml"
    tables = [f"[variants.plus-{pct}]\nslowdown_pct = {pct}.0\n" for pct in planted_pct]
    path.write_text(PLANTED.format(backend=backend) + "".join(tables))
    return str(path), f"planted-{backend}"


def measured(kit: str, suite: str, rounds: int, path: Path) -> float:
    """Let a build measure; return the seconds that its run took."""
    words = ["run", suite, "--rounds", str(rounds), "--no-energy", "--data", "synthetic", "--out", str(path)]
    begin_s = time.monotonic()
    subprocess.run([kit, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin_s


def reduced(path: Path) -> list[dict[str, object]]:
    """Return what is kept of a run: of each pair of each group its log-ratios, its modes, and what is planted."""
    pairs = []
    for group in read_run(path.stem, read_profile(path)).groups:
        names = {key: sample.name.removeprefix("variant ") for key, sample in group.samples.items()}
        for (key, sample), (other, second) in combinations(group.samples.items(), 2):
            injected = [value(each, "injected_ratio") or 1.0 for each in (sample, second)]
            bimodal = any((part.key, each) in group.modes for part in group.parts for each in (key, other))
            pairs.append(
                {
                    "cell": f"{sample.cell.workload} {sample.cell.task} {sample.cell.batch}",
                    "backend": sample.cell.backend,
                    "names": [names[key], names[other]],
                    "logs": [round(log, 6) for log in log_ratios(STEP, sample, second).values()],
                    "injected": [round(ratio, 6) for ratio in injected],
                    "bimodal": bimodal,
                }
            )
    return pairs


def measure_pairs(  # noqa: PLR0917
    kits: dict[str, str], what: str, seconds: float, count: int, folder: Path, kept: Path
) -> None:
    """Measure so many pairs of runs, and keep each run as a line."""
    folder.mkdir(parents=True, exist_ok=True)
    before = [line for line in lines_of(kept) if line["what"] == what]
    number = 1 + max((line["pair"] for line in before), default=-1)
    round_s = {(line["build"], line["kind"]): line["seconds"] / line["rounds"] for line in before}
    for pair in range(number, number + count):
        suite, kind = suite_of(what, pair, folder)
        for build in ("old", "new") if pair % 2 == 0 else ("new", "old"):
            path = folder / f"{what}-{pair:03d}-{build}.json"
            if (build, kind) not in round_s:
                # A round of another framework shows about as much; the next run of this kind knows better.
                of_build = [seconds for (name, _), seconds in round_s.items() if name == build]
                first = folder / f"{kind}-first-{build}.json"
                round_s[build, kind] = (
                    of_build[-1]
                    if of_build
                    else measured(kits[build], suite, ROUNDS_FOR_VERDICT, first) / ROUNDS_FOR_VERDICT
                )
            rounds = max(ROUNDS_FOR_VERDICT, int(seconds / round_s[build, kind] + MOST_OF_A_ROUND))
            taken_s = measured(kits[build], suite, rounds, path)
            round_s[build, kind] = taken_s / rounds
            line = {"what": what, "pair": pair, "build": build, "kind": kind, "rounds": rounds, "seconds": taken_s}
            with kept.open("a") as lines:
                lines.write(json.dumps({**line, "pairs": reduced(path)}) + "\n")
            print(f"{what} {pair} {build}: {rounds} rounds, {taken_s:.0f} s", file=sys.stderr, flush=True)


def lines_of(kept: Path) -> list[dict]:
    """Return the runs that were measured so far."""
    return [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []


def print_half_widths(lines: list[dict]) -> None:
    """Print the half-widths of pairs of cells, and new ÷ old over the pairs of runs.

    Variants of one cell are alike in what their intervals are made of: what is shown is the mean over their pairs.
    """
    logs, bimodal = defaultdict(lambda: defaultdict(lambda: defaultdict(list))), set()
    for line in lines:
        for pair in line["pairs"]:
            known = over(pair["logs"])
            if known.count < ROUNDS_FOR_VERDICT:
                continue
            name = f"{pair['cell']} {pair['backend']}" if line["what"] == "planted" else ""
            name = name or f"{pair['cell']}: {' / '.join(pair['names'])}"
            logs[name][line["pair"]][line["build"]].append(math.log(known.half_width(0.95)))
            if pair["bimodal"]:
                bimodal.add(name)
    rows, means = [("half-width of the 95 % interval", "old", "new", "new / old [95 %]", "runs")], ([], [])
    of_runs = defaultdict(list)  # pair of runs -> the logarithm of new ÷ old of each name
    for name, runs in sorted(logs.items()):
        both = []
        for number, known in runs.items():
            if known.keys() == {"old", "new"}:
                both.append({build: statistics.fmean(widths) for build, widths in known.items()})
                of_runs[number].append(both[-1]["new"] - both[-1]["old"])
        if not both:
            continue
        shrunk = over([known["new"] - known["old"] for known in both])
        means[name in bimodal].append(shrunk.mean_log)
        widths = [
            f"± {100 * math.expm1(math.exp(statistics.fmean(known[build] for known in both))):.1f} %"
            for build in ("old", "new")
        ]
        ratio = Interval(shrunk.ratio, shrunk.low, shrunk.high) if shrunk.has_interval else f"{shrunk.ratio:.2f}"
        rows.append((name + (" (bimodal)" if name in bimodal else ""), *widths, ratio, len(both)))
    for title, logs_of in (("geometric mean", [*means[0], *means[1]]), ("without bimodal ones", means[0])):
        if logs_of:
            rows.append((title, "", "", f"{math.exp(statistics.fmean(logs_of)):.3f}", ""))
    whole = over([statistics.fmean(logs_of) for logs_of in of_runs.values()])
    if whole.has_interval:
        rows.append(("all of a run", "", "", Interval(whole.ratio, whole.low, whole.high), len(of_runs)))
    printed(rows)


def print_found(lines: list[dict]) -> None:
    """Print what each build says of like variants and of planted delays."""
    rows = [("base against", "build", "runs × tasks", "slower", "faster", "same", "holds the truth")]
    for name in ("like", *(f"plus-{pct}" for pct in sorted(chain(*PLANTED_PCT)))):
        for build in ("old", "new"):
            judged = []
            for line in lines:
                for pair in line["pairs"] if line["build"] == build else ():
                    if pair["names"] == ["base", name] and len(pair["logs"]) >= ROUNDS_FOR_VERDICT:
                        truth = math.log(pair["injected"][1] / pair["injected"][0])
                        known = judge([over([-log for log in pair["logs"]])])[0]
                        judged.append((known.verdict, known.log_interval()[0] <= truth <= known.log_interval()[1]))
            verdicts = [verdict for verdict, _ in judged]
            counts = [share(verdicts.count(word), len(judged)) for word in ("slower", "faster", "same")]
            rows.append((name, build, len(judged), *counts, share(sum(held for _, held in judged), len(judged))))
    printed(rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old")
    parser.add_argument("--new", default=str(Path(sys.executable).with_name("kit")))
    parser.add_argument("--what", choices=["cells", "planted"], default="cells")
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--folder", type=Path, default=Path("bench/builds"), help="of the profiles")
    parser.add_argument("--lines", type=Path, default=KEPT, metavar="FILE")
    options = parser.parse_args()
    if options.pairs:
        if not options.old:
            parser.error("--old: give the command kit of the other build")
        kits = {"old": options.old, "new": options.new}
        measure_pairs(kits, options.what, options.seconds, options.pairs, options.folder, options.lines)
    lines = lines_of(options.lines)
    for what in ("cells", "planted"):
        of_kind = [line for line in lines if line["what"] == what]
        if not of_kind:
            continue
        for build in ("old", "new"):
            known = [line for line in of_kind if line["build"] == build]
            mean_s, rounds = (statistics.fmean(line[name] for line in known) for name in ("seconds", "rounds"))
            print(f"{what}, {build}: {len(known)} runs of {rounds:.1f} rounds and {mean_s:.0f} s in the mean")
        print_half_widths(of_kind)
        print()
        if what == "planted":
            print_found(of_kind)


if __name__ == "__main__":
    main()
