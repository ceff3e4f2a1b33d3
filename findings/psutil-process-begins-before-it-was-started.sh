#!/usr/bin/env bash
# psutil says of a process on Linux that it was created before it was started, by up to a second: `create_time` adds the
# process's age since boot, which has a resolution of 10 ms, to the time of boot in whole seconds (`btime` in /proc/stat,
# which cuts off the fraction). So `time.time() - create_time` of a process that has just begun is up to a second, and
# differs from machine to machine, and from boot to boot, although it is the same each time on one.
#
# Seen: psutil 7.2.2, Python 3.11, Linux: a process begins 0.48 s before it is started, of 0.48 s that btime cuts off.
set -euo pipefail
version=7.2.2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "psutil==$version"
"$work/env/bin/python" - <<'PYTHON'
import subprocess
import sys
import time

import psutil

# When the machine began to count, by both clocks; psutil.boot_time() is this in whole seconds.
cut_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) - psutil.boot_time()
if not 0.05 < cut_s < 1:
    sys.exit(f"this boot cannot show it: the time of boot is {cut_s:.3f} s beyond btime (or the clock was set)")
before = time.time()
with subprocess.Popen(["sleep", "1"]) as child:
    early_s = before - psutil.Process(child.pid).create_time()
    child.kill()
print(f"created {early_s:.3f} s before it was started; btime cuts off {cut_s:.3f} s")
# To two ticks of the kernel.
assert abs(early_s - cut_s) < 0.03, "changed: the times agree"
PYTHON
echo "as described: psutil $version"
