"""Steady state with one strict band: the published recipe, beside which the kit's own rule is shown.

Levels within 1 % of the last one are equivalent, whatever the noise; a change of level inside the last half, however
short, leaves no steady state.
"""

from __future__ import annotations

import math

import numpy as np
from ruptures.detection import KernelCPD

from kit.stats.steady_state import SteadyState, median_filter

SHORTEST = 10


def strict_steady_state(step_ns) -> SteadyState:
    points = median_filter(np.log(np.asarray(step_ns, float)[1:]))
    half = points[points.size // 2 :]
    sigma = 1.4826 * float(np.median(np.abs(half - np.median(half)))) or float(np.std(half)) or 1.0
    search = KernelCPD("linear", min_size=SHORTEST).fit((points - np.median(points)) / sigma)
    ends = [int(end) for end in search.predict(pen=15 * math.log(points.size))]
    starts = [0, *ends[:-1]]
    values = [float(np.median(points[a:b])) for a, b in zip(starts, ends, strict=True)]
    first = len(values) - 1
    while first > 0 and abs(values[first - 1] - values[-1]) <= math.log(1.01):
        first -= 1
    if first == 0:
        return SteadyState("flat", 1)
    if starts[first] > points.size / 2:
        return SteadyState("no_steady_state", None)
    return SteadyState("slowdown" if values[first - 1] < values[-1] else "warmup", 1 + starts[first])
