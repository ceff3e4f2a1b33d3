"""Where a launch's steady state begins, if it has one.

    t  │▇
       │ ▆▅                                   verdict   seen from the last segment backwards
       │   ▃▃▂▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁      flat      every segment is within 1 % of it
       └─┬──────────────┬─────────────── n    warmup    what came before was slower
       step 0          n/2                    slowdown  something before was faster
         └── left out    no_steady_state      it begins only after n/2

Changes of level are found with a linear-kernel change-point search (PELT; Celisse et al. 2018, "New efficient
algorithms for multiple change-point detection with kernels") on the logarithm of the step times; the verdicts follow
Barrett et al. 2017, "Virtual machine warmup blows hot and cold".
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kit.profile.schema import SteadyVerdict

# A shorter segment is a disturbance, not a level: ten steps give its median some meaning.
SEGMENT_STEPS_MIN = 10
# Two segments must fit, one in each half; with fewer steps no change of level could be found.
STEPS_MIN = 2 * SEGMENT_STEPS_MIN
# Penalty per change point, times ln n. At 15 no false split was seen on Gaussian, log-normal or AR(0.5) noise.
PENALTY_PER_LN_N = 15.0
# Levels closer than this are the same level: smaller differences are within the noise of any real machine.
EQUIVALENCE = math.log1p(0.01)
# MAD to standard deviation, for Gaussian noise.
SIGMA_PER_MAD = 1.4826
# Noise below a tenth of the equivalence need not be told apart; the floor also serves constant, quantized series.
SIGMA_MIN = EQUIVALENCE / 10
# The search is quadratic on a flat series (0.9 s at 20 000 points, 0.06 s at 5000); longer ones are thinned by medians.
POINTS_MAX = 5000


class SteadyState(NamedTuple):
    """The verdict, and the index of the first steady step (null: there is none)."""

    verdict: SteadyVerdict
    start: int | None


def find_steady_state(step_ns: ArrayLike) -> SteadyState:
    """Find the steady state in the step times of one launch.

    Args:
        step_ns: shape (steps,), nanoseconds, every step of the launch from step 0.

    Raises:
        ValueError: a step that took no time or less.
    """
    times = np.asarray(step_ns, np.float64)
    if np.any(times <= 0) or not np.all(np.isfinite(times)):
        raise ValueError("every step must take a positive time")
    logs = np.log(times[1:])
    if logs.size < STEPS_MIN:
        return SteadyState("no_steady_state", None)
    stride = -(-logs.size // POINTS_MAX)
    points = median_filter(_thin(logs, stride))
    verdict, start = _walk_back(points, change_points(points))
    return SteadyState(verdict, None if start is None else 1 + start * stride)


def median_filter(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median of each value and its two neighbours; the ends stay as they are."""
    filtered = values.copy()
    before, here, after = values[:-2], values[1:-1], values[2:]
    filtered[1:-1] = np.maximum(np.minimum(before, here), np.minimum(np.maximum(before, here), after))
    return filtered


def noise(points: NDArray[np.float64]) -> float:
    """Standard deviation of the last half, by its MAD.

    The MADs of the last two quarters stand in where they are smaller: a change of level within the last half swells
    the half's own MAD, and would hide behind it in a launch of few steps. Where most values are equal (a coarse clock)
    the MAD is zero and the ordinary standard deviation is taken.
    """
    half = points[points.size // 2 :]
    quarters = half[: half.size // 2], half[half.size // 2 :]
    mad = min(_mad(half), math.sqrt(sum(_mad(quarter) ** 2 for quarter in quarters) / 2))
    sigma = SIGMA_PER_MAD * mad if mad > 0 else float(np.std(half))
    return max(sigma, SIGMA_MIN)


def _mad(values: NDArray[np.float64]) -> float:
    return float(np.median(np.abs(values - np.median(values))))


def change_points(points: NDArray[np.float64]) -> list[int]:
    """Ends of the segments of constant level, ascending; the last is ``points.size``."""
    from ruptures.detection import KernelCPD  # most of a second to import, and comparing profiles never needs it

    # Only differences count; around zero the sums of squares lose no digits.
    scaled = (points - np.median(points)) / noise(points)
    search = KernelCPD("linear", min_size=SEGMENT_STEPS_MIN).fit(scaled)
    return [int(end) for end in search.predict(pen=PENALTY_PER_LN_N * math.log(points.size))]


def _thin(logs: NDArray[np.float64], stride: int) -> NDArray[np.float64]:
    """Medians of `stride` consecutive values; a remainder at the end joins the last block."""
    if stride == 1:
        return logs
    blocks = logs.size // stride
    thinned: NDArray[np.float64] = np.median(logs[: blocks * stride].reshape(blocks, stride), axis=1)
    return thinned


def _walk_back(points: NDArray[np.float64], ends: list[int]) -> tuple[SteadyVerdict, int | None]:
    """Join to the last segment those before it at the same level; judge by what remains."""
    starts = [0, *ends[:-1]]
    offsets = [float(np.median(points[a:b])) for a, b in zip(starts, ends, strict=True)]
    offsets = [offset - offsets[-1] for offset in offsets]
    first = len(offsets) - 1
    while first > 0 and abs(offsets[first - 1]) <= EQUIVALENCE:
        first -= 1
    if first == 0:
        return "flat", 0
    if starts[first] > points.size // 2:
        return "no_steady_state", None
    return ("slowdown" if min(offsets[:first]) < -EQUIVALENCE else "warmup"), starts[first]
