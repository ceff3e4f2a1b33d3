"""How good the estimate of what is left is, with `--precision`: launches expected over launches that it then took.

    python tests/bench/bench_launches_left.py [--runs N]

Prints, asserts nothing. The real decisions (`kit.engines.continuation`) over planted launches: the logarithms of a
cell's launch medians are normal, of one spread, and a given share of launches has no steady state. The estimate is
taken when each cell has had so many launches; within a run all launches take the same time, so a ratio of launches is
one of time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from profile_builder import build_cell, build_launch, build_run_plan

from kit.engines.continuation import Continuation
from kit.engines.pilots import PILOT_LAUNCHES
from kit.profile.launch import Launch, LaunchRequest
from kit.stats.launch_summary import summary_of

PRECISION_PCT = 2.0
SPREADS = (0.01, 0.02, 0.04, 0.06)
CELLS = (1, 12)
UNSTEADY_SHARES = (0.0, 0.4)
LOOKS = (PILOT_LAUNCHES, 5, 10)
STEPS = 61
JUMP_AT = 45
# Of the steps of a launch, as a share.
STEP_NOISE = 0.003
# What the time left is asked to hold.
FACTOR = 1.5


def planted(random: np.random.Generator, spread: float, unsteady_share: float) -> Callable[[LaunchRequest], Launch]:
    """Answers a request with a launch of one level, or of two where it is to have no steady state."""

    def answer(request: LaunchRequest) -> Launch:
        level_ns = 1e7 * np.exp(random.normal(0, spread) + random.normal(0, STEP_NOISE, STEPS))
        unsteady = random.random() < unsteady_share
        level_ns[JUMP_AT:] *= 2 if unsteady else 1
        steps = np.rint(level_ns).astype(int).tolist()
        launch = build_launch(request.cell, request.round, step_ns=steps, warmup_steps=1, utilization=None)
        summary = summary_of(launch)
        if summary is None or (summary.median_ns is None) != unsteady:
            raise SystemExit(f"planted a launch that is not what it should be: {steps}")
        return launch

    return answer


def ratios(random: np.random.Generator, cells: int, spread: float, unsteady_share: float) -> dict[int, float]:
    """Launches of each cell -> expected over taken, of one run; without those after which nothing was left."""
    plan = build_run_plan(
        [build_cell("torch", f"net{number}") for number in range(cells)], launches=5, precision_pct=PRECISION_PCT
    )
    continuation, answer, ended = Continuation(plan), planted(random, spread, unsteady_share), []
    expected = {}
    while requests := continuation.rest_of_round(ended):
        ended += [answer(request) for request in requests]
        rounds = 1 + requests[0].round
        if rounds in LOOKS:
            expected[rounds] = (len(ended), sum(continuation.expected(ended).values()))
    return {rounds: left / (len(ended) - had) for rounds, (had, left) in expected.items() if len(ended) > had}


def main() -> None:
    """Print one line a kind of run and moment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    random = np.random.default_rng(0)
    print(f"--precision {PRECISION_PCT:g}, {runs} runs a row; expected / taken")
    print(f"cells  spread  unsteady  after  runs with more    5 %  median   95 %  within a factor {FACTOR:g}")
    for cells, spread, unsteady_share in product(CELLS, SPREADS, UNSTEADY_SHARES):
        found = [ratios(random, cells, spread, unsteady_share) for _ in range(runs)]
        for look in LOOKS:
            seen = [of_run[look] for of_run in found if look in of_run]
            if not seen:
                continue
            low, median, high = np.quantile(seen, [0.05, 0.5, 0.95])
            within = np.mean([1 / FACTOR <= ratio <= FACTOR for ratio in seen])
            print(
                f"{cells:5}  {spread:6.0%}  {unsteady_share:8.0%}  {look:5}  {len(seen):14}  "
                f"{low:5.2f}  {median:6.2f}  {high:5.2f}  {within:.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
