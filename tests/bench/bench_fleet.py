"""Fleets made of a reference profile, with slow nodes planted: which are found, and who is named that is not slow.

python tests/bench/bench_fleet.py [--profile FILE] [--draws 200] [--nodes 500] [--node-sd 0.005]

Every node has two profiles. Each takes its rounds from those of the reference at random, with replacement and apart for
each group of cells, and a level of its node: real nodes of one kind differ. Then one draw is written as files and read
by `kit fleet --from`, with its time.
"""

import argparse
import copy
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from kit.compare.fleet_nodes import judge, reduce_node
from kit.profile.store import canonical_json, profile_digest, read_profile

REFERENCE = Path(__file__).parents[2] / "profiles/reference/cpu-epyc-2-vcpu-quick.json"
SLOW, RUNS = 5, 2


def drawn(run, groups, level, *, rng, node, number):
    """Return a run of a node: rounds of the reference at random."""
    rounds = {}
    for cells in groups:
        numbers = sorted({number for key in cells if key in run.rounds for number in run.rounds[key]})
        chosen = rng.choice(numbers, len(numbers))
        for key in cells:
            known = run.rounds.get(key, {})
            rounds[key] = {at: known[take] + level for at, take in enumerate(chosen.tolist()) if take in known}
    named = replace(run.run, label=f"n{node}-{number}", given_label=f"n{node}", id=f"{node}/{number}")
    return run._replace(run=named, rounds=rounds)


def fleet_of(run, groups, levels, rng):
    return [
        drawn(run, groups, level, rng=rng, node=node, number=number)
        for node, level in enumerate(levels)
        for number in range(RUNS)
    ]


def levels_of(args, slow_pct, rng):
    levels = rng.normal(0, args.node_sd, args.nodes)
    if slow_pct:
        levels[:SLOW] = np.log1p(slow_pct / 100) + rng.normal(0, args.node_sd, SLOW)
    return levels


def written(folder, profile, levels, rng):
    """Write every node's profiles as files: launches of the reference, times stretched."""
    for node, level in enumerate(levels):
        for number in range(RUNS):
            made = copy.deepcopy(profile)
            made.id, made.label = f"{node}-{number}", f"n{node}"
            rounds = profile.suite.rounds
            chosen = {group.key: rng.choice(rounds, rounds) for group in profile.groups}
            for result in made.cells:
                by_round = {launch.round: copy.deepcopy(launch.blocks) for launch in result.launches}
                for launch in result.launches:
                    taken = int(chosen[launch.group][launch.round % len(chosen[launch.group])])
                    blocks = copy.deepcopy(by_round.get(taken, launch.blocks))
                    for name in ("span_ns", "duration_ns", "median_ns"):
                        values = [round(value * np.exp(level)) for value in getattr(blocks, name)]
                        setattr(blocks, name, values)
                    launch.blocks = blocks
            plain = msgspec.to_builtins(made)
            plain["digest"] = profile_digest(plain)
            (folder / f"n{node}-{number}.json").write_bytes(canonical_json(plain))


def timed(args, profile, rng):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        levels = levels_of(args, 5, rng)
        written(folder, profile, levels, rng)
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "kit", "fleet", "--from", str(folder), "--format", "jsonl"],
            capture_output=True,
            text=True,
            check=False,
        )
        took_s = time.perf_counter() - begin
    named = [line.split('"')[3] for line in done.stdout.splitlines() if '"verdict": "slow"' in line]
    print(f"{args.nodes * RUNS} files, 5 % planted: {took_s:.1f} s, exit {done.returncode}, slow: {named}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", type=Path, default=REFERENCE)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--node-sd", type=float, default=0.005, help="of the logarithm of nodes' levels")
    args = parser.parse_args()
    profile = read_profile(args.profile)
    run, groups = reduce_node("reference", profile), [group.cells for group in profile.groups]
    print(f"{args.profile.name}: {args.nodes} nodes, {RUNS} profiles each, {SLOW} slow, {args.draws} draws")
    print("slow by   found of all   draws that name another   others named")
    for slow_pct in (0, 3, 5, 10):
        rng = np.random.default_rng(slow_pct)
        slow_named, draws_wrong, wrong = 0, 0, 0
        for _ in range(args.draws):
            fleet = judge(fleet_of(run, groups, levels_of(args, slow_pct, rng), rng))
            named = {int(node.name[1:]) for node in fleet.nodes if node.versus.verdict in ("slower", "faster")}
            planted = set(range(SLOW)) if slow_pct else set()
            slow_named += len(named & planted)
            draws_wrong += bool(named - planted)
            wrong += len(named - planted)
        of = SLOW * args.draws if slow_pct else 0
        print(
            f"{slow_pct:>4} %   {slow_named:>6} of {of:<6} {draws_wrong:>8} of {args.draws:<12} {wrong:>8}", flush=True
        )
    timed(args, profile, np.random.default_rng(1))


if __name__ == "__main__":
    main()
