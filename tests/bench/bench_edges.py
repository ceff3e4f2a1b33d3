"""What a block pays for its measurement: reading the counters at its edges, and the stamps between its steps.

    python tests/bench/bench_edges.py [--reads 2000] [--backend torch]

Prints the median and the 99th percentile of one read of all edge counters, of each source alone, and of the CPU times
of all threads (before the first edge and behind each last one), in microseconds;
two reads as a share of a block of 0.25 s (they lie outside its timed steps); and a stamp as a share of a step of 1 ms.
`--backend` loads a framework and starts its threads first. How stamps compare with other clocks: bench_stamp.py.
"""

from __future__ import annotations

import argparse
import textwrap
import time

import numpy as np
from measuring import printed

from kit import clock
from kit.backends.backend_catalog import FRAMEWORKS, load
from kit.runner.worker_spec import usable_cpus
from kit.sensors.sources import EdgeCounters
from kit.suites.suite import MeasureTable
from kit.worker.evidence import ThreadUse

STAMPS = 20_000
STEP_NS = 1e6


def read_us(read, reads):
    """Return the median and the 99th percentile of a call, microseconds."""
    taken_ns = np.empty(reads)
    for place in range(reads):
        begin_ns = time.perf_counter_ns()
        read()
        taken_ns[place] = time.perf_counter_ns() - begin_ns
    return np.percentile(taken_ns, [50, 99]) / 1e3


def stamp_ns():
    """Return the nanoseconds of one stamp: a loop of stamps, less the same loop of nothing."""
    stamp = clock.Stamps(STAMPS, "monotonic_raw").stamp
    begin_ns = time.perf_counter_ns()
    for _ in range(STAMPS):
        pass
    empty_ns = time.perf_counter_ns() - begin_ns
    begin_ns = time.perf_counter_ns()
    for _ in range(STAMPS):
        stamp()
    return (time.perf_counter_ns() - begin_ns - empty_ns) / STAMPS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reads", type=int, default=2000)
    parser.add_argument("--backend", choices=FRAMEWORKS)
    arguments = parser.parse_args()
    if arguments.backend:
        load(arguments.backend).set_threads(len(usable_cpus()))
    rows = [("one read", "counters", "median µs", "p99 µs")]
    counters = EdgeCounters(usable_cpus())
    whole = read_us(counters.read, arguments.reads)
    rows.append(("all", len(counters.names), *(f"{value:.1f}" for value in whole)))
    for source in counters._sources:
        if source.read is not None:
            names = " ".join(report.name for report in source.reports)
            values = read_us(source.read, arguments.reads)
            rows.append(
                (f"  {textwrap.shorten(names, 50)}", len(source.reports), *(f"{value:.1f}" for value in values))
            )
    threads = read_us(ThreadUse().used, arguments.reads // 10)
    rows.append(("times of its threads", "", *(f"{value:.1f}" for value in threads)))
    printed(rows)
    block_s = MeasureTable().block_s
    print(f"two reads: {100 * 2 * whole[0] / (block_s * 1e6):.3f} % of a block of {block_s} s")
    cost_ns = float(np.median([stamp_ns() for _ in range(11)]))
    print(f"a stamp: {cost_ns:.0f} ns, {100 * cost_ns / STEP_NS:.4f} % of a step of 1 ms")


if __name__ == "__main__":
    main()
