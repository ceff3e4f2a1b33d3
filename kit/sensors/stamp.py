"""The stamp of a reading. Apart from `kit.clock`, whose native timer the sampler neither needs nor should load."""

from __future__ import annotations

import time


def now_ns() -> int:
    """Nanoseconds on CLOCK_MONOTONIC_RAW, the time base of every record of a launch."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
