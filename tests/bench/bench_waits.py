"""Does a step take longer because the program waited before it? That is what an injected delay adds beyond itself.

    taskset -c 0 python tests/bench/bench_waits.py [--seconds 60]

One process runs stretches of 20 ms of steps in random order: without waits, and with a busy wait of 1 to 50 % of a step
after each step, as the delays of `kit selftest` are. The time of a step is without its wait. A step is so many products
of small matrices in NumPy; no framework and no other process is involved.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections import defaultdict

import numpy as np
from measuring import printed

from kit.clock import now_ns
from kit.stats.estimate import over

WAITS_PCT = (0, 1, 2, 3, 5, 50)
STRETCH_S = 0.02
PRODUCTS, SIZE = 20, 192


def stretch_ns(matrices: np.ndarray, steps: int, share: float) -> float:
    """Return what a step takes in a stretch of so many, without the wait after each."""
    spent_ns = 0
    for _ in range(steps):
        begin_ns = now_ns()
        for matrix in matrices:
            matrix @ matrix
        done_ns = at_ns = now_ns()
        spent_ns += done_ns - begin_ns
        end_ns = done_ns + round(share * (done_ns - begin_ns))
        while at_ns < end_ns:
            at_ns = now_ns()
    return spent_ns / steps


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    matrices = np.random.default_rng(1).random((PRODUCTS, SIZE, SIZE), np.float32)
    steps = max(3, round(STRETCH_S * 1e9 / stretch_ns(matrices, 100, 0)))
    logs = defaultdict(list)
    end_s = time.monotonic() + options.seconds
    while time.monotonic() < end_s:
        known = {}
        for pct in random.sample(WAITS_PCT, len(WAITS_PCT)):
            stretch_ns(matrices, 2, 0)  # what came before is over
            known[pct] = stretch_ns(matrices, steps, pct / 100)
        for pct in WAITS_PCT[1:]:
            logs[pct].append(math.log(known[pct] / known[0]))
    rows = [("a wait after each step of", "steps after it take longer by [95 %]", "stretches")]
    for pct, ratios in logs.items():
        # The machine's own stalls are in few stretches, and make these many times as long.
        parts = [statistics.median(ratios[at::20]) for at in range(20)]
        known = over(parts)
        low, high = (100 * math.expm1(end) for end in known.log_interval())
        rows.append((f"{pct} %", f"{100 * math.expm1(known.mean_log):+.2f} [{low:+.2f}, {high:+.2f}] %", len(ratios)))
    print(f"a step takes {stretch_ns(matrices, 100, 0) / 1e6:.2f} ms\n")
    printed(rows)


if __name__ == "__main__":
    main()
