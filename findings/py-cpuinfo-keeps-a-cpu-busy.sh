#!/usr/bin/env bash
# py-cpuinfo 9.0.0 takes a second on x86 processors, and keeps a CPU busy for all of it, although nothing is computed: a
# child process sleeps for that second, to count the processor's ticks, and its parent asks in a loop without a pause
# whether the child has ended. A benchmark that calls get_cpu_info() in another thread or process while it measures takes a
# CPU from what it measures; pytest-benchmark and others call it. On other architectures no ticks are counted.
#
# Seen: py-cpuinfo 9.0.0, Python 3.11, Linux on x86-64: 1.02 s of CPU time in 1.11 s.
set -euo pipefail
version=9.0.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "$(uname -m)" = x86_64 ] || { echo "this needs an x86-64 processor"; exit 1; }
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "py-cpuinfo==$version"
"$work/env/bin/python" - <<'PYTHON'
import resource
import time

import cpuinfo

begin = time.perf_counter()
cpuinfo.get_cpu_info()
wall_s = time.perf_counter() - begin
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu_s = used.ru_utime + used.ru_stime
print(f"{cpu_s:.2f} s of CPU time in {wall_s:.2f} s")
assert wall_s > 1, "changed: it no longer counts ticks for a second"
assert cpu_s > 0.4, "changed: it no longer keeps a CPU busy while it waits"
PYTHON
echo "as described: py-cpuinfo $version"
