"""Joules over a window from a sensor's readings, or why there are none. Zero joules are never an answer.

               begin                                        end
    counter  ───┼──┐     ┌─────┐     ┌─────┐     ┌─────┐      ┼───
                   └─────┘     └─────┘     └─────┘     └──────┼
                   first update                   last update
                   ├──────────── window ───────────┤            joules = counter there - counter here

A counter holds still between updates, so its window runs from one update to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

# An unaligned end costs up to one update: of a hundred, 1 %. And boards average over up to a second, which leaks in
# at both ends: ten seconds keep that small. (docs/sensors.md, "Energy")
UPDATES_MIN = 100
WINDOW_MIN_NS = 10_000_000_000
# Alignment gives up a tick at either end; a sensor that answered for less of the window than this says little of it.
COVERAGE_MIN = 0.9
# Fewer updates than this do not show a period.
PERIOD_UPDATES_MIN = 3


class Joules(NamedTuple):
    """Energy between two readings of a sensor."""

    joules_j: float
    window_ns: int


class Refusal(NamedTuple):
    """Why there is no number: a code, and the values that go with it."""

    code: str
    values: dict[str, float | str]


def counter_energy(
    at_ns: Sequence[int], joules_j: Sequence[float], begin_ns: int, end_ns: int, update_period_ns: int | None = None
) -> Joules | Refusal:
    """Return the rise of a cumulative counter from its first update within [begin, end] to its last.

    Args:
        at_ns: shape (n,), when it was read.
        joules_j: shape (n,), what it read; failed reads left out.
        begin_ns: of the window.
        end_ns: of the window.
        update_period_ns: the sensor's own period. A longer one that the readings show is believed instead; a shorter
            one they cannot show.
    """
    at, value = np.asarray(at_ns, np.int64), np.asarray(joules_j, np.float64)
    updates = np.flatnonzero(np.diff(value)) + 1
    updates = updates[(at[updates] >= begin_ns) & (at[updates] <= end_ns)]
    at, value = at[updates], value[updates]
    if at.size == 0:
        return Refusal("counter_stuck", {"block_s": (end_ns - begin_ns) / 1e9})
    if np.any(np.diff(value) < 0):
        return Refusal("counter_reset", {})
    if at.size >= PERIOD_UPDATES_MIN:
        update_period_ns = max(int(np.median(np.diff(at))), update_period_ns or 0)
    refusal = _refused(at, begin_ns, end_ns, update_period_ns)
    return refusal or Joules(float(value[-1] - value[0]), int(at[-1] - at[0]))


def power_energy(
    at_ns: Sequence[int], power_w: Sequence[float], begin_ns: int, end_ns: int, update_period_ns: int | None = None
) -> Joules | Refusal:
    """Return power integrated by trapezoids between its readings within [begin, end]; arguments as above."""
    at, value = np.asarray(at_ns, np.int64), np.asarray(power_w, np.float64)
    inside = (at >= begin_ns) & (at <= end_ns)
    at, value = at[inside], value[inside]
    refusal = _refused(at, begin_ns, end_ns, update_period_ns)
    if refusal is not None:
        return refusal
    joules = float(np.trapezoid(value, (at - at[0]) / 1e9))
    return Joules(joules, int(at[-1] - at[0])) if joules > 0 else Refusal("zero_power", {})


def _refused(at: npt.NDArray[np.int64], begin_ns: int, end_ns: int, update_period_ns: int | None) -> Refusal | None:
    """Return why readings at `at` say too little of the window; None where they say enough."""
    needed_ns = max(WINDOW_MIN_NS, UPDATES_MIN * (update_period_ns or 0))
    if end_ns - begin_ns < needed_ns:
        return Refusal("energy_block_too_short", {"block_s": (end_ns - begin_ns) / 1e9, "needed_s": needed_ns / 1e9})
    coverage = float(at[-1] - at[0]) / (end_ns - begin_ns) if at.size else 0.0
    if coverage < COVERAGE_MIN:
        return Refusal("energy_low_coverage", {"coverage_pct": 100 * coverage, "needed_pct": 100 * COVERAGE_MIN})
    return None
