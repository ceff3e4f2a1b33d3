"""Which operations decide the speed of a program that XLA compiled."""

from __future__ import annotations

import re

# Loops, products, and calls into a library such as oneDNN or cuDNN.
KERNEL_OPS = re.compile(r"\s(while|dot|convolution)\(|custom_call_target=\"([^\"]+)\"")


def kernel_ops(text: str) -> list[str]:
    """Return those operations of an optimized HLO module in text form, each once and in alphabetical order."""
    return sorted({operation or target for operation, target in KERNEL_OPS.findall(text)})
