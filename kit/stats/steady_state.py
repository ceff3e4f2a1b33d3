"""Where a launch's steady state begins, if it has one.

    t  │▇
       │ ▆▅              ▆               verdict   steps that are not at the level of the last half
       │   ▃▃▂▁▁▁▁▁▁▁▁▁▁▁ ▁▁▁▁▁▁▁▁▁▁▁▁▁  flat      none begin in the first half
       └─┬─────────────┬─┬────────────── n    warmup    slower ones, before the steady steps
       step 0         n/2 └ disturbance  slowdown  a faster one, before the steady steps
         └── left out    no_steady_state      more than a tenth of the last half

How often it is right, on recorded launches and on generated ones: docs/steady-state.md.

Changes of level are found with a linear-kernel change-point search (PELT; Celisse et al. 2018, "New efficient
algorithms for multiple change-point detection with kernels") on the logarithm of the step times. That verdicts are per
launch, and that levels closer than the noise are one level, is Barrett et al. 2017, "Virtual machine warmup blows hot
and cold".
"""

from __future__ import annotations

import math
import statistics
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kit.profile.schema import SteadyVerdict
from kit.stats import unsteady

# A shorter segment is a disturbance, not a level: ten steps give its median some meaning.
SEGMENT_STEPS_MIN = 10
# Two segments must fit, one in each half; with fewer steps no change of level could be found.
STEPS_MIN = 2 * SEGMENT_STEPS_MIN
# Penalty per change point, times ln n. At 15 no false split was seen on Gaussian, log-normal or AR(0.5) noise.
PENALTY_PER_LN_N = 15.0
# Steps this close together are neighbours: what differs among them is noise, what differs beyond is a change of level.
# Three of the shortest levels; fewer would take noise in which steps resemble their neighbours (AR(0.8)) for levels.
NEIGHBOUR_STEPS = 3 * SEGMENT_STEPS_MIN
# Levels closer than this, or than the launch's own noise allows where that is more, are the same level.
EQUIVALENCE = math.log1p(0.01)
# The levels of the last half may lie this many times the noise apart: single steps that far apart are common. At 3, a
# change by 1.5 % at 0.5 % noise is found wherever it falls.
WANDER_PER_SIGMA = 3.0
# But not further than this, however noisy: on recorded launches it is what parted those that an eye calls steady
# (narrower than 8 %) from those that it does not (wider than 10 %).
WANDER_MAX = math.log1p(0.1)
# How far from the steady level a level of the beginning may lie, unless the last half itself takes it; at most half of
# WANDER_MAX, so that no two steady levels are further apart. Stricter than within the last half, as a warm-up falls on
# all launches alike and no interval over launches would show it.
BEGINNING_PER_SIGMA = 2.0
# Of the last half, how much may lie elsewhere (a burst of the machine's other work). Were all of it slower, the
# median of the rest would be read at its quantile 0.5 / 0.9, which is off by 0.14 of the noise and no more.
DISTURBED_SHARE_MAX = 0.1
# Noise in the logarithm above which steps differ by half and more: whatever their median is, it is not a level.
NOISE_MAX = 0.4
# MAD to standard deviation, for Gaussian noise.
SIGMA_PER_MAD = 1.4826
# Noise below a tenth of the equivalence need not be told apart; the floor also serves constant, quantized series.
SIGMA_MIN = EQUIVALENCE / 10
# The search is quadratic on a flat series (0.9 s at 20 000 points, 0.06 s at 5000); longer ones are thinned by medians.
POINTS_MAX = 5000


class SteadyState(NamedTuple):
    """The verdict, and the index of the first steady step, or why there is none."""

    verdict: SteadyVerdict
    start: int | None
    reason: str | None = None


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
        return _none(unsteady.too_few(times.size, 1 + STEPS_MIN))
    stride = -(-logs.size // POINTS_MAX)
    points = median_filter(_thin(logs, stride))
    sigma = noise(points)
    if sigma > NOISE_MAX:
        return _none(unsteady.scattered(sigma))
    found = levels(points, sigma)
    half = points.size // 2
    steady = narrowest_band(found, half)
    allowed = max(EQUIVALENCE, min(WANDER_PER_SIGMA * sigma, WANDER_MAX))
    if steady.width > allowed:
        change, ends, begins = largest_change(found, half, steady)
        between = 1 + ends * stride, 1 + begins * stride
        return _none(unsteady.wandering(steady.width, allowed, change, between, times.size))
    verdict, start = _begin(points, found, steady, sigma)
    return SteadyState(verdict, 1 + start * stride)


def _none(reason: str) -> SteadyState:
    return SteadyState("no_steady_state", None, reason)


def median_filter(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median of each value and its two neighbours; the ends stay as they are."""
    filtered = values.copy()
    before, here, after = values[:-2], values[1:-1], values[2:]
    filtered[1:-1] = np.maximum(np.minimum(before, here), np.minimum(np.maximum(before, here), after))
    return filtered


def noise(points: NDArray[np.float64]) -> float:
    """Standard deviation among neighbours in the last half: the median of the MADs of its blocks of 30 points.

    Levels that change from block to block do not enter it; they would otherwise hide behind the spread that they make
    themselves. Where most neighbours are equal (a coarse clock) the MAD is zero and the blocks' standard deviations are
    taken instead; of two the lower one, as in the other a change of level may lie.
    """
    half = points[points.size // 2 :]
    blocks = np.array_split(half, max(2, half.size // NEIGHBOUR_STEPS))
    mad = float(np.median([_mad(block) for block in blocks]))
    sigma = SIGMA_PER_MAD * mad if mad > 0 else statistics.median_low([float(np.std(block)) for block in blocks])
    return max(sigma, SIGMA_MIN)


def _mad(values: NDArray[np.float64]) -> float:
    return float(np.median(np.abs(values - np.median(values))))


def change_points(points: NDArray[np.float64], sigma: float) -> list[int]:
    """Ends of the segments of constant level, ascending; the last is ``points.size``."""
    from ruptures.detection import KernelCPD  # most of a second to import, and comparing profiles never needs it

    # Only differences count; around zero the sums of squares lose no digits.
    scaled = (points - np.median(points)) / sigma
    search = KernelCPD("linear", min_size=SEGMENT_STEPS_MIN).fit(scaled)
    return [int(end) for end in search.predict(pen=PENALTY_PER_LN_N * math.log(points.size))]


def _thin(logs: NDArray[np.float64], stride: int) -> NDArray[np.float64]:
    """Medians of `stride` consecutive values; a remainder at the end joins the last block."""
    if stride == 1:
        return logs
    blocks = logs.size // stride
    thinned: NDArray[np.float64] = np.median(logs[: blocks * stride].reshape(blocks, stride), axis=1)
    return thinned


class Level(NamedTuple):
    """Points `start` to `end` (exclusive) around one value."""

    start: int
    end: int
    value: float  # median of the logarithms

    def points_from(self, index: int) -> int:
        """How many of its points are at `index` or later."""
        return max(0, self.end - max(self.start, index))


def levels(points: NDArray[np.float64], sigma: float) -> list[Level]:
    """The segments of constant level, in order."""
    ends = change_points(points, sigma)
    starts = [0, *ends[:-1]]
    return [Level(a, b, float(np.median(points[a:b]))) for a, b in zip(starts, ends, strict=True)]


class Band(NamedTuple):
    """A range of levels, by their medians of the logarithms."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """Between its lowest and its highest level."""
        return self.high - self.low

    def holds(self, level: Level) -> bool:
        """Whether the level lies within it."""
        return self.low <= level.value <= self.high


def narrowest_band(found: list[Level], half: int) -> Band:
    """The narrowest range of levels that holds nine tenths of the points from `half` on."""
    late = sorted((level.value, level.points_from(half)) for level in found if level.points_from(half))
    values = np.array([value for value, _ in late])
    held = np.cumsum([0, *(points for _, points in late)])
    # Tenths of whole points are not exact in binary: a hair less is still nine tenths.
    needed = (1 - DISTURBED_SHARE_MAX) * held[-1] - 1e-9
    ends = np.searchsorted(held, held[:-1] + needed)  # of the band that begins with each level, exclusive
    bands = [Band(values[a], values[b - 1]) for a, b in enumerate(ends) if b < held.size]
    return min(bands, key=lambda band: band.width)


def largest_change(found: list[Level], half: int, band: Band) -> tuple[float, int, int]:
    """From one level of the band to the next, from `half` on: its size, where the one ends, where the other begins."""
    late = [level for level in found if level.points_from(half) and band.holds(level)]
    changes = [(after.value - before.value, before.end, after.start) for before, after in pairwise(late)]
    return max(changes, key=lambda change: abs(change[0]))


def _begin(points: NDArray[np.float64], found: list[Level], steady: Band, sigma: float) -> tuple[SteadyVerdict, int]:
    """Where the first half has reached the steady band for good, and how it came there."""
    half = points.size // 2
    late = [points[max(half, level.start) : level.end] for level in found if steady.holds(level)]
    reference = float(np.median(np.concatenate(late)))
    reach = max(EQUIVALENCE, min(BEGINNING_PER_SIGMA * sigma, WANDER_MAX / 2))
    reached = Band(min(steady.low, reference - reach), max(steady.high, reference + reach))
    # A level that reaches further into the last half is part of what that half wanders over.
    disturbed_max = DISTURBED_SHARE_MAX * (points.size - half)
    early = [level for level in found if level.points_from(half) <= disturbed_max and level.start < half]
    start = max((level.end for level in early if not reached.holds(level)), default=0)
    if start == 0:
        return "flat", 0
    before = min(level.value for level in found if level.end <= start)
    return ("slowdown" if before < reached.low else "warmup"), start
