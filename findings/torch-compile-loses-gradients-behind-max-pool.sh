#!/usr/bin/env bash
# A convolution, ReLU, max-pool, flatten, and two linear layers with a ReLU between: the head of nearly every small image
# network. Compiled by torch.compile on a CPU with AVX-512, with images channels first, its loss is that of eager mode, and
# the gradient of everything before the flatten is exactly zero, without a warning: the convolutions are never trained. With
# images channels last, or one linear layer in place of two, or ATEN_CPU_CAPABILITY=avx2, gradients are those of eager mode.
# A loss that falls proves nothing: the linear layers alone make it fall. Compare gradients, or losses after some steps,
# with eager mode.
#
# Seen: torch 2.13.0 for CPUs, Python 3.11, GCC 12.2. With torch 2.15.0 (Python 3.13, on the same processor) all three
# gradients are those of eager mode.
set -euo pipefail
if ! grep -q avx512vl /proc/cpuinfo; then
  echo "this processor has no AVX-512: nothing to see here"
  exit
fi
version=2.13.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "torch==$version" numpy

cat >"$work/gradients.py" <<'PYTHON'
import torch
from torch import nn


def gradient(compiled, layout, channels, linear):
    torch._dynamo.reset()
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), *linear()
    ).to(memory_format=layout)
    images = torch.rand(16, channels, 14, 14).to(memory_format=layout)

    def loss(images):
        return network(images).square().mean()

    value = (torch.compile(loss, dynamic=False) if compiled else loss)(images)
    value.backward()
    return value.item(), network[0].weight.grad


def two():
    return nn.Linear(32 * 49, 256), nn.ReLU(), nn.Linear(256, 10)


def one():
    return (nn.Linear(32 * 49, 10),)


for name, layout, channels, linear in (
    ("channels first", torch.contiguous_format, 64, two),
    ("channels last", torch.channels_last, 64, two),
    ("one linear layer", torch.contiguous_format, 64, one),
):
    (eager_loss, eager), (compiled_loss, compiled) = (
        gradient(is_compiled, layout, channels, linear) for is_compiled in (False, True)
    )
    same_loss = abs(compiled_loss - eager_loss) < 1e-3 * eager_loss
    error = (compiled - eager).norm() / eager.norm()
    agrees = "zero" if not compiled.any() else "wrong" if error > 1e-3 else "that of eager mode"
    print(f"{name}: same loss {same_loss}, gradient {agrees}")
PYTHON
"$work/env/bin/python" "$work/gradients.py" 2>/dev/null | tee "$work/seen"

diff "$work/seen" - <<'SEEN'
channels first: same loss True, gradient zero
channels last: same loss True, gradient that of eager mode
one linear layer: same loss True, gradient that of eager mode
SEEN
echo "as described: torch $version"
