"""What the sampler costs a step: the ratio of a step with a sampler beside it to one without.

    python tests/bench/bench_sampler.py [--pairs 20] [--backend torch] [--workload mlp] [--task train] [--boards 1]

Pairs of four blocks of a member, with and without, in alternating order; the median ratio of their steps with its 95 %
interval. The sampler reads what this machine has, and `--boards` GPUs of the stand-in for NVML, so that its work is
that of a machine with sensors. Counters at the edges lie outside of steps: bench_edges.py. Both together may take
0.5 %.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import case_parser, chosen_cells, held, median_ratio, name_of, printed, timed

from kit.sensors.sampler import Sampling
from kit.sensors.sources import probe_all

STAND_IN = Path(__file__).parents[1] / "standins" / "nvml.c"
BLOCK_S = 0.25
# A sampler imports pynvml and waits for fresh counters before it ticks.
SETTLED_S = 1.5
BLOCKS = 4


def with_stand_in(boards):
    """Start this program again where the loader finds the stand-in."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", f"{folder}/libnvidia-ml.so.1", str(STAND_IN)]
        subprocess.run(command, check=True)
        environment = os.environ | {"LD_LIBRARY_PATH": folder, "NVML_BOARDS": str(boards)}
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode


def log_step(member):
    """Return ln of the median step of some blocks."""
    done = [timed(member.block(BLOCK_S)) for _ in range(BLOCKS)]
    return math.log(statistics.median(step_ns for steps_ns in done for step_ns in steps_ns))


def beside_sampler(member, reports):
    sampling = Sampling.start(reports)
    assert sampling is not None, "nothing to sample here: give --boards 1"
    try:
        time.sleep(SETTLED_S)
        return log_step(member)
    finally:
        sampling.stop()


def main():
    parser = case_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--boards", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.boards and "NVML_BOARDS" not in os.environ:
        sys.exit(with_stand_in(arguments.boards))
    reports = probe_all()
    sampled = sum(report.sampled and report.status != "unavailable" for report in reports)
    rows = [("step", f"with a sampler of {sampled} sensors / without [95 %]")]
    for cell in chosen_cells(arguments, workload=["mlp"], task=["train"]):
        logs = []
        with held([cell]) as (member,):
            for pair in range(arguments.pairs):
                # Which comes first alternates: what warms up or drifts is no cost of the sampler.
                before = log_step(member) if pair % 2 else None
                beside = beside_sampler(member, reports)
                logs.append(beside - (log_step(member) if before is None else before))
        rows.append((name_of(cell), median_ratio(logs)))
    printed(rows)


if __name__ == "__main__":
    main()
