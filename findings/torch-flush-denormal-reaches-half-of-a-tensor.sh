#!/usr/bin/env bash
# torch.set_flush_denormal(True) sets a register of the thread that calls it. Threads that PyTorch's pool has already started
# keep their own: afterwards one half of a large tensor is flushed to zero and the other half is not, and which half depends
# on which thread computed it. The call returns True. Threads that start later inherit the setting, so the same call before
# the first parallel operation flushes everything.
#
# Seen: torch 2.13.0 for CPUs, Python 3.11, Linux on x86-64, two threads: 0.5 of the numbers are zero; 1.0 where the call
# came first.
set -euo pipefail
version=2.13.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "torch==$version" numpy

cat >"$work/flush.py" <<'PYTHON'
import sys

import torch

torch.set_num_threads(2)
if sys.argv[1] == "early":
    assert torch.set_flush_denormal(True)
values = torch.full((1 << 22,), 1e-20)  # the pool starts
assert torch.set_flush_denormal(True)
products = values * 1e-20  # 1e-40, which float32 has as a denormal
# By their bits: a comparison with zero takes a denormal for zero in a thread that flushes.
print((products.view(torch.int32) == 0).float().mean().item())
PYTHON
early=$("$work/env/bin/python" "$work/flush.py" early)
late=$("$work/env/bin/python" "$work/flush.py" late)
echo "zero: $early of the numbers, if the call came before the pool; $late after"
[ "$early" = 1.0 ] || { echo "changed: a call before the pool no longer reaches all threads"; exit 1; }
[ "$late" = 0.5 ] || { echo "changed: a call after the pool no longer reaches one of two threads"; exit 1; }
echo "as described: torch $version"
