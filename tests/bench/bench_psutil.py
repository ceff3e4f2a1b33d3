"""What psutil costs beside a direct read of the same counter, for each counter that is read at the edges of blocks.

    python tests/bench/bench_psutil.py [--reads 500] [--backend torch]

Prints the medians and 99th percentiles of one read by both ways, in microseconds. `--backend` loads a framework and
starts its threads first: psutil then parses the mappings and the children of a larger process. At each edge of a block
all counters together are read, two edges a block of 0.25 s; what is read once in a launch or a run stands below.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import psutil
from bench_edges import read_us
from measuring import printed

from kit.backends.backend_catalog import FRAMEWORKS, load
from kit.runner.worker_spec import usable_cpus
from kit.sensors import linux

EDGES_A_BLOCK, BLOCK_US = 2, 250_000


def at_edges(cpus):
    """Return, for each counter of an edge that psutil has, how the kit reads it and how psutil does."""
    process = psutil.Process()
    sources = {source.reports[0].name: source.read for source in linux.open_edges(cpus) if source.read is not None}
    psutils = {
        "machine.busy_ns": lambda: psutil.cpu_times(percpu=True),
        "machine.swapped_in_b": psutil.swap_memory,
        "process.cpu_ns": lambda: (process.cpu_times(), process.num_ctx_switches()),
        "process.resident_b": process.memory_info,
        "process.children_ns": lambda: [child.cpu_times() for child in process.children()],
    }
    return {name: (sources[name], read) for name, read in psutils.items() if name in sources}


def outside(folder):
    """Return the same of what is read once in a launch, a run or by the sampler."""
    process = psutil.Process()
    return {
        "frequency": (lambda: [gauge.read() for gauge in linux.FREQUENCY], psutil.cpu_freq),
        "load": (lambda: float(Path("/proc/loadavg").read_text().split()[0]), psutil.getloadavg),
        "memory": (lambda: Path("/proc/meminfo").read_text(), psutil.virtual_memory),
        "steal, context switches": (
            lambda: Path("/proc/stat").read_text(),
            lambda: (psutil.cpu_times(), psutil.cpu_stats()),
        ),
        "loaded libraries": (lambda: Path("/proc/self/maps").read_text(), process.memory_maps),
        "threads' CPU times": (
            lambda: [(task / "stat").read_text() for task in Path("/proc/self/task").iterdir()],
            process.threads,
        ),
        "age of the process": (linux.process_age_ns, lambda: time.time() - psutil.Process().create_time()),
        "free disk": (lambda: os.statvfs(folder), lambda: psutil.disk_usage(str(folder))),
    }


def main() -> None:
    """Print the costs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reads", type=int, default=500)
    parser.add_argument("--backend", choices=FRAMEWORKS)
    args = parser.parse_args()
    if args.backend:
        load(args.backend).set_threads(len(usable_cpus()))
    rows, sums = [("what", "directly: median", "p99", "psutil: median", "p99")], [0.0, 0.0]
    for is_at_edges, reads in ((True, at_edges(usable_cpus())), (False, outside(Path()))):
        for name, pair in reads.items():
            known = [read_us(read, args.reads) for read in pair]
            if is_at_edges:
                sums = [total + median for total, (median, _) in zip(sums, known, strict=True)]
            rows.append((name, *(f"{value:.1f}" for both in known for value in both)))
        rows.append(("all at an edge", f"{sums[0]:.1f}", "", f"{sums[1]:.1f}", "") if is_at_edges else ("",) * 5)
    printed(rows[:-1])
    direct_pct, psutil_pct = (100 * EDGES_A_BLOCK * total / BLOCK_US for total in sums)
    print(f"psutil {psutil.__version__}, µs; edges of a block of 0.25 s: {direct_pct:.2f} % of it directly, ", end="")
    print(f"{psutil_pct:.2f} % by psutil")


if __name__ == "__main__":
    main()
