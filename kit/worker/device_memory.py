"""Was it for want of the device's memory that a framework raised? No framework is imported to tell."""

from __future__ import annotations

import re

# torch.OutOfMemoryError; tensorflow.errors.ResourceExhaustedError.
TYPES = ("OutOfMemoryError", "ResourceExhaustedError")
# XLA's status, in a JaxRuntimeError that can be anything; CUDA's and its libraries', in a RuntimeError.
WORDS = re.compile(r"RESOURCE_EXHAUSTED|out of memory|OOM when allocating|_ALLOC_FAILED", re.IGNORECASE)


def ran_out(error: BaseException) -> bool:
    """Whether it was, of an exception or of what it was raised from: torch.compile wraps what a kernel raises."""
    raised: BaseException | None = error
    while raised is not None:
        names = {kind.__name__ for kind in type(raised).__mro__}
        if names.intersection(TYPES) or WORDS.search(str(raised)):
            return True
        raised = raised.__cause__
    return False
