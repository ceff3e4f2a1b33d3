#!/bin/sh
# JAX 0.10.2, the last for Python 3.11, on a CPU: XLA's convolution lays the patches of its input side by side in a buffer
# of its own, nine times the input for a 3 x 3 kernel. It asks for that buffer in each call. Above 32 MiB glibc maps and
# unmaps it each time, so that the kernel clears every page of it again: four times the batch takes nine times as long.
# The compiled program's memory_analysis() says that it needs no temporary memory. The tunables mmap_threshold (1 GiB) and
# mmap_max=0 of glibc changed nothing. JAX 0.11.0 and later lay out no patches.
#
# Whoever trains a convolutional network under 0.10 measures page faults beside arithmetic: a training step of two
# convolutions and two dense layers was 1.74 +- 0.05 times as fast under 0.12.0.1, in one run on one machine.
#
# Seen 2026-11-30, jax 0.10.2 and jax 0.12.0.1, Python 3.13, x86-64, 2 CPUs; 84,934,656 B of patches are 20,736 pages:
#
#   jax 0.10.2    batch  32     9.4 ms a call        0 faults a call   said to need 0 B
#   jax 0.10.2    batch 128    81.8 ms a call    20737 faults a call   said to need 0 B
#   jax 0.12.0.1  batch  32     4.2 ms a call        0 faults a call   said to need 0 B
#   jax 0.12.0.1  batch 128    16.4 ms a call        0 faults a call   said to need 0 B
#
# Python 3.11 has 0.10.2 alone.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python=${PYTHON:-python3}
versions=0.10.2
if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then versions="0.10.2 0.12.0.1"; fi
cat >"$folder/call.py" <<'PYTHON'
import ctypes
import resource
import statistics
import time

PR_SET_THP_DISABLE = 41  # a huge page has 512 of these pages, and one fault
ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)

import jax  # noqa: E402
import numpy as np  # noqa: E402

CALLS, PAGE_B = 10, resource.getpagesize()


def convolved(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


faults = {}
for batch in (32, 128):
    random = np.random.default_rng(0)
    x = jax.device_put(random.standard_normal((batch, 26, 26, 32), dtype=np.float32))
    kernel = jax.device_put(random.standard_normal((3, 3, 32, 64), dtype=np.float32))
    program = jax.jit(convolved).lower(x, kernel).compile()
    times = []
    for call in range(2 + CALLS):
        if call == 2:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        begin = time.perf_counter()
        jax.block_until_ready(program(x, kernel))
        times.append(1e3 * (time.perf_counter() - begin))
    faults[batch] = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // CALLS
    said = program.memory_analysis().temp_size_in_bytes
    print(
        f"jax {jax.__version__:8}  batch {batch:3}  {statistics.median(times[2:]):6.1f} ms a call"
        f"   {faults[batch]:6} faults a call   said to need {said} B"
    )
    assert said == 0
patches = 128 * 24 * 24 * 3 * 3 * 32 * 4 // PAGE_B
assert faults[32] < patches / 20
assert (faults[128] > 0.95 * patches) == (jax.__version__ == "0.10.2"), (faults, patches)
PYTHON
for version in $versions; do
  "$python" -m venv "$folder/$version"
  "$folder/$version/bin/pip" install --quiet --disable-pip-version-check "jax==$version" "jaxlib==$version"
  JAX_PLATFORMS=cpu "$folder/$version/bin/python" "$folder/call.py"
done
