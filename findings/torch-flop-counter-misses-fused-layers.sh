#!/usr/bin/env bash
# PyTorch's FlopCounterMode gives no operations for layers that run as one fused operator without a formula in its registry:
# an LSTM on a CPU counts 0 where a GRU of the same size counts all, and an encoder layer or attention in eval() under
# inference_mode counts 0 where the same call with gradients counts all (the fused path is taken only without gradients).
# There is no warning. Utilization of such a network comes out as 0 %, or as that of its other layers.
#
# Seen: torch 2.13.0 for CPUs, Python 3.11: LSTM 0, GRU 1474560; encoder layer 655360 with gradients, 0 without.
set -euo pipefail
version=2.13.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "torch==$version" numpy
"$work/env/bin/python" -W ignore - <<'PYTHON'
import torch
from torch.utils.flop_counter import FlopCounterMode

batch = torch.rand(4, 10, 32)


def flops(layer, mode):
    with FlopCounterMode(display=False) as counter, mode():
        layer.eval()(batch)
    return counter.get_total_flops()


lstm = flops(torch.nn.LSTM(32, 64, batch_first=True), torch.enable_grad)
gru = flops(torch.nn.GRU(32, 64, batch_first=True), torch.enable_grad)
encoder = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
slow, fused = flops(encoder, torch.enable_grad), flops(encoder, torch.inference_mode)
print(f"LSTM {lstm}, GRU {gru}; encoder layer {slow} with gradients, {fused} without")
assert gru > 0
assert slow > 0
assert lstm == 0, "changed: an LSTM's operations are counted"
assert fused == 0, "changed: the fused encoder layer's operations are counted"
PYTHON
echo "as described: torch $version"
