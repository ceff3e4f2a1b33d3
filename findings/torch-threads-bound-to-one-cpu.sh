#!/usr/bin/env bash
# PyTorch keeps as many threads as the machine has CPUs where OpenMP's places leave them one CPU (OMP_PLACES, or libgomp's
# GOMP_CPU_AFFINITY): the threads wait for each other in a loop, each in the other's way, and a small network takes tens of
# times longer. `taskset`, which gives the process the same CPU, makes PyTorch start one thread. In both cases the process
# may run on one CPU afterwards (libgomp binds the main thread, too), so sched_getaffinity does not tell them apart; only
# torch.get_num_threads() beside it does.
#
# Seen: torch 2.13.0 for CPUs, Python 3.11, Linux with two CPUs: 1 thread by taskset; 2 threads on CPU 0 by OMP_PLACES,
# 24 to 36 times slower.
set -euo pipefail
version=2.13.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "$(nproc)" -gt 1 ] || { echo "this needs two CPUs"; exit 1; }
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "torch==$version" numpy

cat >"$work/step.py" <<'PYTHON'
import os
import time

import torch

net = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
batch = torch.rand(64, 784)
times_s = []
with torch.inference_mode():
    for _ in range(120):
        begin = time.perf_counter()
        net(batch)
        times_s.append(time.perf_counter() - begin)
cpus = {cpu for thread in os.listdir("/proc/self/task") for cpu in os.sched_getaffinity(int(thread))}
print(torch.get_num_threads(), len(cpus), round(1e6 * sorted(times_s[20:])[50]))
PYTHON
cpu=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
read -r threads_by_taskset _ step_us <<<"$(taskset -c "$cpu" "$work/env/bin/python" "$work/step.py")"
read -r threads_by_places cpus slow_us <<<"$(OMP_PLACES="{$cpu}" "$work/env/bin/python" "$work/step.py")"
echo "taskset: $threads_by_taskset thread, median step $step_us µs; OMP_PLACES: $threads_by_places threads on $cpus CPU, $slow_us µs"
[ "$threads_by_taskset" -eq 1 ] || { echo "changed: taskset no longer gives one thread"; exit 1; }
[ "$threads_by_places" -gt 1 ] && [ "$cpus" -eq 1 ] || { echo "changed: threads and places agree"; exit 1; }
[ "$slow_us" -gt $((3 * step_us)) ] || { echo "changed: the threads are no longer in each other's way"; exit 1; }
echo "as described: torch $version"
