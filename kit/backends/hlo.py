"""What decides the speed of a program that XLA has compiled, as its optimized HLO names it."""

from __future__ import annotations

import re

# Loops, products, and whatever is called in a library, such as oneDNN or cuDNN.
KERNEL_OPS = re.compile(r"\s(while|dot|convolution)\(|custom_call_target=\"([^\"]+)\"")


def kernel_ops(text: str) -> list[str]:
    """Return the telling operations of an optimized HLO module in text form, each once."""
    return sorted({operation or target for operation, target in KERNEL_OPS.findall(text)})
