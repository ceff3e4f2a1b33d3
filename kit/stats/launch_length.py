"""How many steady steps a launch should have, so that a given time makes a cell as precise as it can.

A launch costs its start, build, compilation and warm-up before it gives one steady step. Where launches differ much
from each other, steps beyond a few are wasted; where steps scatter and launches agree, more steps are cheaper than more
launches. Kalibera and Jones 2013, "Rigorous benchmarking in reasonable time", section 6: with the costs c and the
variances T² of a step (s) and of a launch (l), the most precise use of the time has

    r = sqrt( c_l / c_s · T_s² / T_l² )    steps in a launch
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.stats.launch_summary import lag_1_autocorrelation

# Variance of a median over that of a mean, for Gaussian noise and many steps.
MEDIAN_OVER_MEAN_VARIANCE = math.pi / 2
# Steps that follow each other closely count for few; beyond this a lag-1 model says nothing any more.
AUTOCORRELATION_MAX = 0.95


class Pilot(NamedTuple):
    """A launch that is learned from."""

    steady_ns: NDArray[np.int64]  # (steps,)
    around_ns: int  # what the launch took beside its steady steps


def steps_that_pay(pilots: Sequence[Pilot]) -> int | None:
    """Steady steps a launch; null where launches differ no more than their steps explain: then the more the better.

    Args:
        pilots: at least two, each with steady steps.
    """
    logs = [np.log(pilot.steady_ns.astype(np.float64)) for pilot in pilots]
    per_step = [_variance_per_step(series) for series in logs]
    of_steps = float(np.mean(per_step))
    explained = float(np.mean([variance / series.size for variance, series in zip(per_step, logs, strict=True)]))
    of_launches = float(np.var([np.median(series) for series in logs], ddof=1)) - explained
    if of_launches <= 0:
        return None
    launch_cost = float(np.mean([pilot.around_ns for pilot in pilots]))
    step_cost = float(np.mean([pilot.steady_ns.mean() for pilot in pilots]))
    return math.ceil(math.sqrt(launch_cost / step_cost * of_steps / of_launches))


def _variance_per_step(logs: NDArray[np.float64]) -> float:
    """Variance of a median of n steps, times n: swollen by what neighbouring steps share (AR(1))."""
    shared = float(np.clip(lag_1_autocorrelation(logs) or 0.0, 0.0, AUTOCORRELATION_MAX))
    return MEDIAN_OVER_MEAN_VARIANCE * float(logs.var()) * (1 + shared) / (1 - shared)
