"""How a sensor answers when the load on its board steps: its delay, its averaging window, and the level that it shows.

    load     ____|‾‾‾‾‾‾‾‾|____        the steps, whose times the loaded process stamped
    sensor   ______/‾‾‾‾‾‾‾‾\\__        a mean over `window` that comes `delay` late, read again and again

A sensor's value at t is taken for the mean of the true power over [t - delay - window, t - delay]; a counter is the
integral of that. For a given delay and window the levels between the edges follow by least squares; delay and window
are those with the smallest residual.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from kit.stats.window_energy import Array, Refusal, Window, impossible

# A value that a sensor holds is of its last update, so only fresh readings have a time. Changes this much further apart
# than the readings are the sensor's.
HELD_FROM = 1.5
# So many changes show a period; a clock that stands still has fewer, and is then taken to be fresh at each reading.
CHANGES_FOR_PERIOD = 10
# A sensor with fewer fresh values in one load is slower than the load.
FRESH_LEAST = 8
# Failed reads above this share: the board went away.
LOST_SHARE_MAX = 0.1
# Steps of load have to explain this fraction of the variance (for a counter: of that around a straight line).
EXPLAINED_LEAST = 0.8
# A response that takes this fraction of the shortest load or idle may well take longer.
RESPONSE_SHARE_MAX = 0.9
# Clocks of host and board may disagree a little: a sensor that seems to come before its cause is not refused.
EARLIEST_S = -0.2
# A window of nothing has no mean; a millisecond is below what readings can tell.
WINDOW_MIN_S = 0.001
# The search halves its grid until its cells are finer than readings: (3 s / 12) / 2^6 = 4 ms.
COARSE, FINE, HALVINGS = 13, 5, 6
# Keeps equations solvable where a column is empty or two are alike; nothing beside a column's length of 1.
TINY = 1e-12


class StepResponse(NamedTuple):
    """How a sensor shows steps of load."""

    delay_ns: int  # dead time: nothing of a step shows before
    window_ns: int  # of the moving mean; about 0: each value is of one moment
    lag_ns: int  # delay and half of the window: by so much the sensor's values lie behind the truth
    lag_low_ns: int  # the lags that the loads show one by one: the smallest,
    lag_high_ns: int  # and the largest
    period_ns: int  # between fresh values
    spacing_ns: int  # between readings: no time is known better than half of it
    before: float  # the levels before the first load, of all loads, and after the last; of a counter per second
    load: float
    after: float


def step_response(
    at_ns: Sequence[int],
    values: Sequence[float | None],
    loads: Sequence[Window],
    update_period_ns: int | None = None,
    *,
    is_counter: bool = False,
) -> StepResponse | Refusal:
    """Return the response to some loads that have idle before, between and after them.

    Args:
        at_ns: shape (n,), when it was read.
        values: shape (n,); None: this read failed.
        loads: begin and end of each, by the same clock.
        update_period_ns: that the sensor is taken to have, where its readings show none.
        is_counter: it adds up what a gauge would show, times seconds.
    """
    known = [(at, value) for at, value in zip(at_ns, values, strict=True) if value is not None and math.isfinite(value)]
    if len(known) <= (1 - LOST_SHARE_MAX) * len(values):
        return Refusal("readings_lost", {"lost": len(values) - len(known), "readings": len(values)})
    zero_ns = loads[0][0]
    at_s = np.array([(at - zero_ns) / 1e9 for at, _ in known])
    value = np.array([value for _, value in known], np.float64)
    loads_s = [((begin - zero_ns) / 1e9, (end - zero_ns) / 1e9) for begin, end in loads]
    changed = np.flatnonzero(np.diff(value)) + 1
    refusal = impossible(value, is_counter=True) if is_counter else None
    if not changed.size:
        refusal = Refusal("value_did_not_change", {"limit_s": float(at_s[-1] - at_s[0])})
    if refusal is not None:
        return refusal
    spacing_s = float(np.median(np.diff(at_s)))
    # A value that seldom changes is its load's doing: the shorter gaps are of the sensor.
    shown_s = float(np.quantile(np.diff(at_s[changed]), 0.25)) if changed.size >= CHANGES_FOR_PERIOD else 0.0
    seen_s = max(shown_s, spacing_s) if shown_s or update_period_ns is None else update_period_ns / 1e9
    # What counts as fresh is judged by no longer a period than the sensor is taken to have, with some slack.
    period_s = max(min(seen_s, HELD_FROM * update_period_ns / 1e9), spacing_s) if update_period_ns else seen_s
    fresh_s, fresh = _fresh(at_s, value, changed, spacing_s, period_s, is_counter=is_counter)
    longest_s = _shortest_stretch_s(at_s, loads_s)
    if min(np.count_nonzero((fresh_s >= begin) & (fresh_s <= end)) for begin, end in loads_s) < FRESH_LEAST:
        return Refusal("sensor_slower_than_load", {"period_s": period_s, "load_s": longest_s})
    whole = _fit(fresh_s, fresh, loads_s, is_counter=is_counter)
    if max(whole.window_s, whole.lag_s) > RESPONSE_SHARE_MAX * longest_s:
        return Refusal("sensor_slower_than_load", {"period_s": whole.window_s, "load_s": longest_s})
    if whole.explained < EXPLAINED_LEAST:
        return Refusal("no_step", {"explained_pct": 100 * max(0.0, whole.explained)})
    lags_s = []
    for number, load in enumerate(loads_s):
        # Each load by itself, with the idle on both of its sides; the response to the load before has to be over.
        begin = (loads_s[number - 1][1] + load[0]) / 2 if number else -math.inf
        end = loads_s[number + 1][0] if number + 1 < len(loads_s) else math.inf
        inside = (fresh_s >= begin) & (fresh_s <= end)
        lags_s.append(_fit(fresh_s[inside], fresh[inside], [load], is_counter=is_counter).lag_s)
    times_s = (whole.lag_s - whole.window_s / 2, whole.window_s, whole.lag_s, min(lags_s), max(lags_s))
    times_ns = (round(seconds * 1e9) for seconds in (*times_s, seen_s, spacing_s))
    before, *edges = whole.levels.tolist()
    ramp, level, in_loads = edges[2 * len(loads)], before, []
    for (begin, end), up, down in zip(loads_s, edges[::2], edges[1::2], strict=False):
        in_loads.append(level + up + ramp * (end - begin) / 2)
        level += up + down + ramp * (end - begin)  # a ramp stays where it ends; the step down takes it back
    return StepResponse._make([*times_ns, before, float(np.mean(in_loads)), level])


def _fresh(
    at_s: Array, value: Array, changed: np.ndarray, spacing_s: float, period_s: float, *, is_counter: bool
) -> tuple[Array, Array]:
    """Return the readings whose age is known, and when they were fresh.

    A value that changed was updated since the reading before. One that repeats is as good as fresh where the next
    change is more than a period away: an update came in between, and showed the same.
    """
    fresh_s, is_fresh = at_s.copy(), np.zeros(at_s.size, bool)
    if period_s > HELD_FROM * spacing_s:
        fresh_s[changed] = (at_s[changed] + at_s[changed - 1]) / 2
    is_fresh[changed] = True
    if not is_counter:
        following = np.searchsorted(changed, np.arange(at_s.size), side="right")
        next_change_s = np.append(at_s[changed], np.inf)[following]
        is_fresh |= next_change_s - at_s > max(period_s, spacing_s) * HELD_FROM
    return fresh_s[is_fresh], value[is_fresh]


def _shortest_stretch_s(at_s: Array, loads_s: Sequence[tuple[float, float]]) -> float:
    """Return the shortest of the loads and of the idle beside them: a longer response does not show."""
    edges = [float(at_s[0]), *(edge for load in loads_s for edge in load), float(at_s[-1])]
    return max(0.0, min(later - earlier for earlier, later in pairwise(edges)))


class _Fit(NamedTuple):
    """The lag and window whose steps come nearest to the readings."""

    lag_s: float
    window_s: float
    explained: float  # share of the variance that the steps explain; of a counter, beyond a straight line
    levels: Array  # before the first load, what each edge of a load adds, what a load adds a second, a counter's start


def _fit(at_s: Array, value: Array, loads_s: Sequence[tuple[float, float]], *, is_counter: bool) -> _Fit:
    """Return the best of a grid of lags and windows that is halved again and again around its best."""
    value = value - value[0] if is_counter else value  # a counter may have counted for years
    level = [at_s, np.ones_like(at_s)] if is_counter else [np.ones_like(at_s)]

    def solved(lag_s: float, window_s: float) -> tuple[Array, float]:
        """Return the best levels for a lag and a window, and the sum of the squares that they leave over."""
        late, early = at_s - lag_s + window_s / 2, at_s - lag_s - window_s / 2

        def mean(edge_s: float, order: int) -> Array:
            """Integrate a step (order 0) or a ramp (1) from an edge on over the window; of a counter, over time."""
            exponent = order + (2 if is_counter else 1)
            area: Array = np.maximum(late - edge_s, 0) ** exponent - np.maximum(early - edge_s, 0) ** exponent
            return area / (window_s * math.factorial(exponent))

        # A load may draw more as its board warms.
        ramp = sum(mean(begin, 1) - mean(end, 1) for begin, end in loads_s)
        steps = [mean(edge, 0) for load in loads_s for edge in load]
        columns = np.column_stack([level[0], *steps, ramp, *level[1:]])
        # A decomposition of so many rows takes twenty times as long as the normal equations.
        lengths = np.linalg.norm(columns, axis=0) + TINY
        scaled = columns / lengths
        gram = scaled.T @ scaled + TINY * np.eye(columns.shape[1])
        levels: Array = np.linalg.solve(gram, scaled.T @ value) / lengths
        return levels, float(np.square(value - columns @ levels).sum())

    longest_s = _shortest_stretch_s(at_s, loads_s)
    lag_s, window_s = (EARLIEST_S + longest_s) / 2, longest_s / 2
    for halving, points in enumerate((COARSE, *[FINE] * HALVINGS)):
        around = (np.arange(points) - points // 2) / (COARSE - 1) / 2**halving
        lags_s, windows_s = lag_s + (longest_s - EARLIEST_S) * around, window_s + longest_s * around
        candidates = [
            (lag, window)
            for lag, window in product(lags_s, windows_s)
            if WINDOW_MIN_S <= window <= longest_s and lag - window / 2 >= EARLIEST_S
        ]
        candidates += [(lag, WINDOW_MIN_S) for lag in lags_s]
        lag_s, window_s = min(candidates, key=lambda candidate: solved(*candidate)[1])
    levels, left = solved(lag_s, window_s)
    line = np.polynomial.Polynomial.fit(at_s, value, int(is_counter))
    total = float(np.square(value - line(at_s)).sum())
    return _Fit(float(lag_s), float(window_s), 1 - left / total if total else 0.0, levels)
