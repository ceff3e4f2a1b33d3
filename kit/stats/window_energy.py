"""Joules over a window from a sensor's readings, how far they may be off, or why there are none. Never zero.

               begin                                        end
    counter  ───┼──┐     ┌─────┐     ┌─────┐     ┌─────┐      ┼───
                   └─────┘     └─────┘     └─────┘     └──────┼
                   first update                   last update
                   ├──────────── window ───────────┤            joules = counter there - counter here

A counter holds still between updates, so its window runs from one update to another. When each happened is known to
the spacing of the readings, and what it then held is at most one update old: the error is at most (update period +
spacing) / window of the joules, whatever the readings' cadence is.

A board's sensor lags, by how much is not known: what ran before a block leaks into its begin. That part of the block
is left out, and what the power then still moves by is taken for a longer lag and added to the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Window = tuple[int, int]  # begin and end, on CLOCK_MONOTONIC_RAW

# The size of one long block: an unaligned end costs 1 % of a hundred updates, and boards average over up to a second,
# which leaks in at both ends: ten seconds keep that small. (docs/explanation/energy.md)
UPDATES_PLANNED = 100
WINDOW_MIN_NS = 10_000_000_000
# Fresh values that were seen. A machine so busy that its sampler comes at half its pace still has its joules, with the
# larger error beside them; fewer do not show that a sensor works.
UPDATES_MIN = 50
ERROR_SHARE_MAX = 0.05
# Alignment gives up a tick at either end; a sensor that answered for less of the window than this says little of it.
# No hole in a counter's readings may be longer than the rest.
COVERAGE_MIN = 0.9
# Some windows cannot be made longer: a compilation, the stretches of a fit, a stretch of idle.
PART_UPDATES_MIN = 10
PART_ERROR_SHARE_MAX = 0.1
# Idle is a part of what is subtracted, and its error is said with it.
IDLE_ERROR_SHARE_MAX = 0.2
# No sensor of a real value reads the same for so long.
CONSTANT_READINGS = 100
# Changes this much further apart than readings are those of the sensor, not of who reads it.
REPEATS_FROM = 1.5
# A load that is steady repeats a value now and then, and for how long is chance; a sensor that is read more often than
# it has fresh values repeats each of them for a period at least. So its period is near the shortest repeats; a few are
# left out, because a log that was cut or begun anew has shorter ones.
SHORTEST_REPEATS_PCT = 5.0
# A rise between two readings is a power where so many updates lie between them.
UPDATES_FOR_POWER = 10
# Lags from none to the longest, at each of which the joules of a part are read.
LAGS_TRIED = 5
# If a sensor nears its value like a capacitor, with a time constant as long as the window, the mean over the window
# lacks twice what it moves by from one half of the window to the other.
LAG_PER_MOVE = 2


class Joules(NamedTuple):
    """Energy between two readings of a sensor, or over parts of a time."""

    joules_j: float
    window_ns: int
    updates: int  # fresh values that were seen
    error_fraction: float  # of the joules: their largest error
    power_max_w: float | None = None  # between two readings; null: they are too close together for that


class Refusal(NamedTuple):
    """Why there is no number: a code, and the values that go with it."""

    code: str
    values: dict[str, float | str]


def block_energy(
    at_ns: Sequence[int],
    values: Sequence[float],
    begin_ns: int,
    end_ns: int,
    update_period_ns: int | None = None,
    *,
    is_counter: bool,
    memory_ns: int = 0,
    lag_max_ns: int = 0,
    is_each_fresh: bool = False,
) -> Joules | Refusal:
    """Return the energy of one long block, from readings within [begin, end].

    A cumulative counter's is its rise from its first update to its last; power is integrated by trapezoids.

    Args:
        at_ns: shape (n,), when the sensor was read.
        values: shape (n,), joules or watts; failed reads left out.
        begin_ns: of the block.
        end_ns: of the block.
        update_period_ns: the sensor's own period. A longer one that the readings show is believed instead; a shorter
            one they cannot show.
        is_counter: the values add up.
        memory_ns: how long before it a reading of power is still of: what is of the time before the block is left out.
        lag_max_ns: of a sensor whose lag is not known: so much of the block's begin does not count.
        is_each_fresh: power that repeats the value before it is no older, unless the sensor's period is that long.
    """
    at, value = np.asarray(at_ns, np.float64), np.asarray(values, np.float64)
    counts_from_ns, block_ns, hole_ns = begin_ns + max(memory_ns, lag_max_ns), end_ns - begin_ns, 0.0
    inside = (at >= counts_from_ns) & (at <= end_ns)
    if is_counter:
        changes = np.flatnonzero(np.diff(value)) + 1
        changes = changes[inside[changes]]
        if not changes.size:
            return Refusal("counter_stuck", {"block_s": block_ns / 1e9})
        first, last = changes[0], changes[-1]
        refusal = impossible(value[first - 1 : last + 1], is_counter=True)
        fresh = at[changes]
        usual_ns, period_ns = _spacing_ns(fresh), _period_ns(at, fresh, update_period_ns)
        spacing_ns = max(_spacing_ns(at), *(float(at[index] - at[index - 1]) for index in (first, last)))
        at, total_j = at[first : last + 1], value[first : last + 1]
        hole_ns, power_max_w = float(np.diff(at).max(initial=0.0)), _highest_w(at, total_j, update_period_ns)
    else:
        at, value = at[inside], value[inside]
        if value.size >= CONSTANT_READINGS and value[0] > 0 and np.all(value == value[0]):
            return Refusal("constant_power", {"readings": value.size, "power_w": float(value[0])})
        if (refusal := impossible(value, is_counter=False)) is not None:
            return refusal
        fresh = at if is_each_fresh else at[1:][np.diff(value) != 0]
        usual_ns, period_ns = _spacing_ns(at), _period_ns(at, fresh, update_period_ns)
        spacing_ns = float(np.diff(at).max(initial=0.0))
        total_j, power_max_w = _integral(at, value), float(value.max(initial=0.0))
    if refusal is None and block_ns < WINDOW_MIN_NS:
        refusal = Refusal("energy_block_too_short", {"block_s": block_ns / 1e9, "needed_s": WINDOW_MIN_NS / 1e9})
    covered_ns = float(at[-1] - at[0]) if at.size else 0.0
    error_share = (period_ns + spacing_ns) / max(covered_ns, 1.0)
    refusal = refusal or _uncovered(
        covered_ns, end_ns - counts_from_ns, block_ns, error_share,
        most=ERROR_SHARE_MAX, spacing_ns=spacing_ns, usual_ns=usual_ns, hole_ns=hole_ns,
    )  # fmt: skip
    if refusal is not None and refusal.code == "energy_block_too_short":
        fresh_s = ((UPDATES_MIN + 1) * max(period_ns, usual_ns) + counts_from_ns - begin_ns) / 1e9
        needed_s = max(float(refusal.values["needed_s"]), fresh_s)
        refusal = Refusal(refusal.code, {**refusal.values, "needed_s": needed_s})
    updates = fresh.size
    if is_each_fresh and period_ns > REPEATS_FROM * usual_ns:
        updates = min(updates, int(covered_ns / period_ns) + 1)
    if refusal is None and updates < UPDATES_MIN:
        refusal = Refusal("too_few_updates", {"updates": updates, "needed": UPDATES_MIN})
    if refusal is not None:
        # Nothing shows how old a value is that never changes, so that no block would be long enough.
        is_about_age = refusal.code in ("energy_block_too_short", "too_few_updates")
        is_constant = is_about_age and not fresh.size and value.size >= UPDATES_MIN
        return (
            Refusal("constant_power", {"readings": value.size, "power_w": float(value[0])}) if is_constant else refusal
        )
    moved_share = _moved_share(at, total_j) if lag_max_ns else 0.0
    error_share += LAG_PER_MOVE * moved_share
    if error_share > ERROR_SHARE_MAX:
        return Refusal("power_moves", {"moved_pct": 100 * moved_share, "block_s": block_ns / 1e9})
    return Joules(float(total_j[-1] - total_j[0]), int(covered_ns), updates, error_share, power_max_w)


def parts_energy(
    at_ns: Sequence[int],
    values: Sequence[float],
    windows: Sequence[Window],
    update_period_ns: int | None = None,
    *,
    is_counter: bool,
    error_share_max: float = PART_ERROR_SHARE_MAX,
    lag_max_ns: int = 0,
) -> Joules | Refusal:
    """Return the energy over windows that are as long as what ran in them: between readings it is interpolated.

    Each end of a window is off by up to a period and a spacing, one way or the other: the errors of n windows add up
    as the root of n. Beside it what ran between them is smeared into them, always the same way: where that drew
    nothing, by a third of a spacing a window in the mean. A sensor that lags shows them later, by up to `lag_max_ns`:
    how far the joules of the later windows are from these is added. Other arguments are as above.
    """
    at, value = np.asarray(at_ns, np.float64), np.asarray(values, np.float64)
    begin_ns, end_ns, total_ns = windows[0][0], windows[-1][1], sum(end - begin for begin, end in windows)
    before, after, after_lag = np.searchsorted(at, (begin_ns, end_ns, end_ns + lag_max_ns)).tolist()
    around, until_lag = slice(max(0, before - 1), after + 1), slice(max(0, before - 1), after_lag + 1)
    later_at, later_value = at[until_lag], value[until_lag]
    at, value = at[around], value[around]
    inside = np.any([(at >= begin) & (at <= end) for begin, end in windows], axis=0)
    with np.errstate(invalid="ignore"):  # what is not finite is refused below
        fresh = at[(np.diff(value, prepend=np.nan) != 0) & inside]
    spacing_ns = float(np.diff(at).max(initial=0.0))
    error_ns = _period_ns(at, fresh, update_period_ns) + spacing_ns
    error_share = error_ns * max(math.sqrt(len(windows)), len(windows) / 3) / total_ns
    refusal = impossible(value, is_counter=is_counter)
    if refusal is None and fresh.size < PART_UPDATES_MIN:
        refusal = Refusal("too_few_updates", {"updates": fresh.size, "needed": PART_UPDATES_MIN})
    covered_ns = min(float(at[-1]), end_ns) - max(float(at[0]), begin_ns) if at.size else 0.0
    refusal = refusal or _uncovered(
        covered_ns, end_ns - begin_ns, total_ns, error_share,
        most=error_share_max, spacing_ns=spacing_ns, usual_ns=_spacing_ns(at),
    )  # fmt: skip
    if refusal is not None:
        return refusal
    total_j = later_value if is_counter else _integral(later_at, later_value)
    # Begin and end of each window, shifted by each lag: (lags, windows, 2).
    edges_ns = np.asarray(windows, np.float64) + np.linspace(0, lag_max_ns, LAGS_TRIED)[:, None, None]
    # Beyond the readings the power of the last two of a counter, or the last of a power, goes on.
    following = np.clip(np.searchsorted(later_at, edges_ns), 1, later_at.size - is_counter)
    last = following - 1
    if is_counter:
        power_w = (total_j[following] - total_j[last]) / (later_at[following] - later_at[last]) * 1e9
    else:
        power_w = (later_value[last] + np.interp(edges_ns, later_at, later_value)) / 2
    edges_j = total_j[last] + power_w * (edges_ns - later_at[last]) / 1e9
    joules, *later_j = np.sum(edges_j[..., 1] - edges_j[..., 0], axis=1).tolist()
    error_share += max(abs(lagging - joules) for lagging in later_j) / max(joules, 1e-12)
    if error_share > error_share_max:
        return Refusal("sensor_lags", {"lag_s": lag_max_ns / 1e9, "error_pct": 100 * error_share})
    highest_w = _highest_w(at, value, update_period_ns) if is_counter else float(value[inside].max())
    return Joules(joules, total_ns, fresh.size, error_share, highest_w)


def idle_power(at_ns: Sequence[int], power_w: Sequence[float], begin_ns: int, end_ns: int) -> Joules | Refusal:
    """Return power integrated over a stretch of idle, in which a sensor may well read the same for some seconds."""
    at, value = np.asarray(at_ns, np.float64), np.asarray(power_w, np.float64)
    inside = (at >= begin_ns) & (at <= end_ns)
    at, value = at[inside], value[inside]
    if at.size < PART_UPDATES_MIN:
        return Refusal("too_few_readings", {"readings": at.size, "needed": PART_UPDATES_MIN})
    covered_ns, spacing_ns = float(at[-1] - at[0]), float(np.diff(at).max())
    error_share = (_spacing_ns(at) + spacing_ns) / covered_ns
    refusal = impossible(value, is_counter=False) or _uncovered(
        covered_ns, end_ns - begin_ns, covered_ns, error_share,
        most=IDLE_ERROR_SHARE_MAX, spacing_ns=spacing_ns, usual_ns=0.0,
    )  # fmt: skip
    joules = float(np.trapezoid(value, (at - at[0]) / 1e9))
    return refusal or Joules(joules, int(covered_ns), at.size, error_share, float(value.max()))


def refresh_ns(at_ns: Array, power_w: Array) -> float:
    """Return the time between fresh values of power that somebody logged at a pace of his own, as its repeats show it.

    Where the values changed less than twice, it is unknown, and at least as long as the longer stretch.
    """
    changed_ns = at_ns[1:][np.diff(power_w) != 0]
    if changed_ns.size > 1:
        return float(np.percentile(np.diff(changed_ns), SHORTEST_REPEATS_PCT, method="lower"))
    edges_ns = np.concatenate([at_ns[:1], changed_ns, at_ns[-1:]])
    return float(np.diff(edges_ns).max(initial=0.0))


def impossible(value: Array, *, is_counter: bool) -> Refusal | None:
    """Return why no sensor that works reads this: a counter does not fall, and power is above zero."""
    if not np.isfinite(value).all():
        return Refusal("reading_not_finite", {})
    if is_counter:
        return Refusal("counter_reset", {}) if np.any(np.diff(value) < 0) else None
    if np.any(value < 0):
        return Refusal("negative_power", {"power_w": float(value.min())})
    zeros = int(np.sum(value == 0))
    return Refusal("zero_power", {"readings": zeros, "of_readings": value.size}) if zeros else None


def _uncovered(
    covered_ns: float,
    length_ns: float,
    time_ns: float,
    error_share: float,
    *,
    most: float,
    spacing_ns: float,
    usual_ns: float,
    hole_ns: float = 0.0,
) -> Refusal | None:
    """Return why readings say too little of a time: they begin late or end early, have a hole, or lie too far apart."""
    if covered_ns < COVERAGE_MIN * length_ns:
        coverage_pct = 100 * max(0.0, covered_ns / length_ns)
        return Refusal("energy_low_coverage", {"coverage_pct": coverage_pct, "needed_pct": 100 * COVERAGE_MIN})
    hole_max_ns = (1 - COVERAGE_MIN) * time_ns
    if hole_ns <= hole_max_ns:
        if error_share <= most:
            return None
        # The readings may be enough but for one hole.
        hole_max_ns = most * time_ns
        hole_ns = spacing_ns if error_share - (spacing_ns - usual_ns) / time_ns <= most else 0.0
    if hole_ns:
        return Refusal("energy_gap", {"gap_s": hole_ns / 1e9, "most_s": hole_max_ns / 1e9})
    return Refusal("energy_block_too_short", {"block_s": time_ns / 1e9, "needed_s": time_ns * error_share / most / 1e9})


def _spacing_ns(at: Array) -> float:
    return float(np.median(np.diff(at))) if at.size > 1 else 0.0


def _period_ns(at: Array, fresh: Array, reported_ns: int | None) -> float:
    """Return the sensor's period: as the readings show it where they repeat, else as reported, else their spacing.

    The cadence of readings is no period of the sensor: where every reading is fresh, it is at least that fast.
    """
    spacing_ns = _spacing_ns(at)
    between_ns = _spacing_ns(fresh)
    shown_ns = between_ns if between_ns > REPEATS_FROM * spacing_ns else 0.0
    return max(shown_ns, spacing_ns if reported_ns is None else float(reported_ns))


def _moved_share(at: Array, total_j: Array) -> float:
    """Return how far the mean powers of both halves of a time are apart, as a share of the whole's.

    By the parabola nearest to the joules: single updates and readings move it little.
    """
    share_of_time = (at - at[0]) / max(at[-1] - at[0], 1.0)
    curvature, slope, _ = np.polyfit(share_of_time, total_j - total_j[0], 2) if at.size > 3 else (0.0, 1.0, 0.0)  # noqa: PLR2004
    return abs(float(curvature / max(slope + curvature, 1e-12)))


def _highest_w(at: Array, joules: Array, update_period_ns: int | None) -> float | None:
    """Return the highest power between two readings of a counter; None where few updates lie between them."""
    if update_period_ns is None or at.size < 2 or update_period_ns * UPDATES_FOR_POWER > _spacing_ns(at):  # noqa: PLR2004
        return None
    # Readings that follow a late one closely would show a power of one update.
    between_ns = np.diff(at)
    enough = between_ns >= UPDATES_FOR_POWER * update_period_ns
    return float(np.max(np.diff(joules)[enough] / between_ns[enough]) * 1e9)


def _integral(at: Array, power_w: Array) -> Array:
    """Return the joules from the first reading to each."""
    steps = np.diff(at) / 1e9 * (power_w[1:] + power_w[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)])
