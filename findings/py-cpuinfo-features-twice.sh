#!/usr/bin/env bash
# py-cpuinfo 9.0.0 lists features of x86 processors under two names on Linux: the kernel's, from /proc/cpuinfo, and its own,
# from the instruction CPUID. So `flags` has "rdrand" and "rdrnd", "sha_ni" and "sha", "avx512_vnni" and "avx512vnni".
# Where CPUID cannot be asked (SELinux in enforcing mode, another architecture) the second names are missing, so that the
# same processor has two sets of flags: who compares machines by `flags` finds a difference that is none.
#
# Seen: py-cpuinfo 9.0.0, Python 3.11, Linux on x86-64.
set -euo pipefail
version=9.0.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep --quiet --word-regexp rdrand /proc/cpuinfo || { echo "this needs an x86-64 processor with rdrand"; exit 1; }
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "py-cpuinfo==$version"
"$work/env/bin/python" - <<'PYTHON'
import pathlib

import cpuinfo

flags = {*cpuinfo.get_cpu_info()["flags"]}
text = pathlib.Path("/proc/cpuinfo").read_text()
kernel = {*text.partition("\nflags")[2].partition("\n")[0].split(":")[1].split()}
print("beyond the kernel's:", *sorted(flags - kernel))
assert kernel <= flags, "changed: the kernel's names are missing"
assert {"rdrand", "rdrnd"} <= flags, "changed: the feature has one name"
PYTHON
echo "as described: py-cpuinfo $version"
