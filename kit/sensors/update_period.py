"""How often a counter really gets a fresh value, measured: vendors rarely say, and boards differ."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median

from kit.sensors.stamp import now_ns

# Fine against the 20 to 100 ms of known boards, and coarse enough to leave the CPU to others.
POLL_S = 0.001
# Five changes are four periods: their median bears one late wake-up.
CHANGES = 5


def measured_update_period_ns(value: Callable[[], float | None], limit_s: float = 0.6) -> int | None:
    """Median time between changes of a counter; None when fewer than two came within `limit_s` seconds.

    A read that fails, and so is None, is passed over. Whatever `value` raises is passed on.
    """
    end_ns = now_ns() + int(limit_s * 1e9)
    changes_ns: list[int] = []
    last = value()
    while len(changes_ns) < CHANGES and (at_ns := now_ns()) < end_ns:
        current = value()
        if current is not None and current != last:
            changes_ns.append(at_ns)
            last = current
        time.sleep(POLL_S)
    periods = [later - earlier for earlier, later in pairwise(changes_ns)]
    return int(median(periods)) if periods else None
