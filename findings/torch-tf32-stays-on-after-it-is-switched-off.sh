#!/usr/bin/env bash
# PyTorch has two interfaces for TensorFloat-32 in convolutions. Where a library asks for it by the newer one
# (torch.backends.fp32_precision = "tf32"), the older switch no longer turns it off: after
# torch.backends.cudnn.allow_tf32 = False the newer interface still says tf32 for convolutions and recurrent layers. That
# assignment raises no error; reading the same switch afterwards does. For matrix products the same order of the older
# call, set_float32_matmul_precision("highest"), does turn it off. A script that asks for full float32 by the older switch,
# and imports something that used the newer one before, has its convolutions set to TensorFloat-32. Setting
# cudnn.conv.fp32_precision = "ieee" turns it off, and the older switch can be read again.
#
# Seen: torch 2.13.0 for CPUs, Python 3.11. The switches are the same without a GPU; what a GPU then computes was not seen.
# 2.15.0 does the same.
set -euo pipefail
version=2.13.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "torch==$version" numpy

cat >"$work/switches.py" <<'PYTHON'
import torch

cudnn, products = torch.backends.cudnn, torch.backends.cuda.matmul


def readable(read):
    try:
        return read()
    except RuntimeError:
        return "RuntimeError"


def show(when):
    older = readable(lambda: cudnn.allow_tf32)
    print(f"{when}: conv {cudnn.conv.fp32_precision}, rnn {cudnn.rnn.fp32_precision}, "
          f"matmul {products.fp32_precision}, cudnn.allow_tf32 {older}")


torch.backends.fp32_precision = "tf32"
show("newer on")
torch.set_float32_matmul_precision("highest")
cudnn.allow_tf32 = False
show("older off")
cudnn.conv.fp32_precision = cudnn.rnn.fp32_precision = "ieee"
show("newer off")
PYTHON
"$work/env/bin/python" "$work/switches.py" 2>/dev/null | tee "$work/seen"

diff "$work/seen" - <<'SEEN'
newer on: conv tf32, rnn tf32, matmul tf32, cudnn.allow_tf32 True
older off: conv tf32, rnn tf32, matmul ieee, cudnn.allow_tf32 RuntimeError
newer off: conv ieee, rnn ieee, matmul ieee, cudnn.allow_tf32 False
SEEN
echo "as described: torch $version"
