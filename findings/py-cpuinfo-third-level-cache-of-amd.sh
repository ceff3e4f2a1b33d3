#!/usr/bin/env bash
# py-cpuinfo 9.0.0 gives the size of the second-level cache of one core as `l3_cache_size` of AMD's processors. It takes the
# line "cache size" of /proc/cpuinfo for the third level's; Linux writes the last level's size there for Intel's processors,
# and the second level's for AMD's. lscpu, which py-cpuinfo asks later, has the right one, but a field that is known is kept.
# And `l2_cache_size`, from lscpu, is the sum over all cores: the two fields are in different units.
#
# /proc/cpuinfo and lscpu are those of an EPYC 7742 (16 MiB for four cores, 512 KiB a core) with eight cores.
#
# Seen: py-cpuinfo 9.0.0, Python 3.11, Linux: l2_cache_size 4194304 (8 × 512 KiB), l3_cache_size 524288 (right: 16 MiB).
set -euo pipefail
version=9.0.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "py-cpuinfo==$version"

mkdir "$work/bin"
cat >"$work/cpuinfo" <<'TEXT'
processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 23
model		: 49
model name	: AMD EPYC 7742 64-Core Processor
stepping	: 0
cache size	: 512 KB
flags		: fpu sse sse2 avx avx2
TEXT
cat >"$work/lscpu" <<'TEXT'
Architecture:        x86_64
Vendor ID:           AuthenticAMD
Model name:          AMD EPYC 7742 64-Core Processor
L1d cache:           256 KiB (8 instances)
L1i cache:           256 KiB (8 instances)
L2 cache:            4 MiB (8 instances)
L3 cache:            32 MiB (2 instances)
TEXT
printf '#!/bin/sh\nexec /bin/cat "%s/cpuinfo"\n' "$work" >"$work/bin/cat"
printf '#!/bin/sh\nexec /bin/cat "%s/lscpu"\n' "$work" >"$work/bin/lscpu"
chmod +x "$work/bin/cat" "$work/bin/lscpu"

PATH="$work/bin:$PATH" "$work/env/bin/python" - <<'PYTHON'
import cpuinfo

info = cpuinfo.get_cpu_info()
print({name: info.get(name) for name in ("brand_raw", "l2_cache_size", "l3_cache_size")})
assert info["l3_cache_size"] == 512 * 1024, "changed: it is no longer the second level's"
assert info["l2_cache_size"] == 8 * 512 * 1024, "changed: it is no longer the sum over the cores"
PYTHON
echo "as described: py-cpuinfo $version"
