"""Generated step times of which the truth is known, and how often the detector should say it.

Each family is a function of a random generator that returns the logarithms of the steps after step 0, around zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter
from scipy.stats import beta

from kit.stats.steady_state import SteadyState

STEPS = 300
SIGMA = 0.005
# A start may be off by a shortest level; a change of 1.5 % at 0.5 % noise cannot be placed more finely.
START_TOLERANCE = 10


class Family(NamedTuple):
    """Series of one kind: which verdicts are right, from which step on, and the share that must get one."""

    kind: str  # section of the table
    name: str
    logs: Callable[[np.random.Generator], np.ndarray]
    right: tuple[str, ...]
    at_least: float  # the stated rate: the lower end of the 95 % interval of the share found right must reach it
    start: int | None = None  # true first steady step, for a beginning that has to be left out


class Rate(NamedTuple):
    """How many of the trials were right, with the 95 % interval of the share (Clopper and Pearson 1934)."""

    right: int
    trials: int

    @property
    def interval(self) -> tuple[float, float]:
        low = float(beta.ppf(0.025, self.right, self.trials - self.right + 1)) if self.right else 0.0
        high = float(beta.ppf(0.975, self.right + 1, self.trials - self.right)) if self.right < self.trials else 1.0
        return low, high


def times_of(logs):
    """Nanoseconds around 10 ms; step 0 is a compile of a second."""
    return np.concatenate([[10**9], np.rint(1e7 * np.exp(logs))]).astype(np.int64)


def rate_of(family: Family, detect: Callable[[np.ndarray], SteadyState], trials: int, seed: int = 1) -> Rate:
    """Let a detector judge the family's series; the same seed gives every detector the same series."""
    rng = np.random.default_rng(seed)
    return Rate(sum(is_right(family, detect(times_of(family.logs(rng)))) for _ in range(trials)), trials)


def is_right(family: Family, found: SteadyState) -> bool:
    verdict, start, _ = found
    placed = family.start is None or start is None or abs(start - family.start) <= START_TOLERANCE
    return verdict in family.right and placed


def white(rng, steps=STEPS, sigma=SIGMA):
    return sigma * rng.standard_normal(steps)


def correlated(rng, steps=STEPS, sigma=SIGMA, by=0.5):
    """AR(1) of standard deviation sigma."""
    innovations = sigma * np.sqrt(1 - by**2) * rng.standard_normal(steps + 100)
    return lfilter([1], [1, -by], innovations)[100:]


def level_until(fraction, level, steps=STEPS):
    """`level` in the first part, zero in the rest."""
    return np.where(np.arange(steps) < fraction * steps, level, 0.0)


def every(period, steps_long, height, steps=STEPS):
    """Bursts of `steps_long` steps, one each `period` steps."""
    return np.where(np.arange(steps) % period < steps_long, height, 0.0)


def random_modes(rng, steps, height, mean_run):
    """Two levels, each left with the same chance at every step."""
    return height * (np.cumsum(rng.random(steps) < 1 / mean_run) % 2)


def _decay(height, constant):
    return height * np.exp(-np.arange(STEPS) / constant)


def _drift(by):
    return np.linspace(by, 0, STEPS)


def _spikes(rng):
    return np.where(rng.random(STEPS) < 0.03, rng.lognormal(-1, 1, STEPS), 0.0)


def _coarse(rng):
    return np.log(rng.choice([33, 34], p=[0.7, 0.3], size=STEPS) / 33)


# Level: stated rate where it begins a launch, and within the last half. 1 % is the equivalence itself: a coin's toss.
LEVELS = {0.01: (0.4, 0.25), 0.015: (0.98, 0.95), 0.03: (0.98, 0.98)}


def _beginning(level: float, part: float, at_least: float) -> Family:
    name = f"{abs(level):.1%} {'slower' if level > 0 else 'faster'}, first {part:.0%}"
    right = "warmup" if level > 0 else "slowdown"
    start = 1 + round(part * STEPS)
    return Family("level", name, lambda rng: level_until(part, level) + white(rng), (right,), at_least, start)


def _late(level: float, part: float, at_least: float) -> Family:
    name = f"{level:.1%} change at {part:.0%}"
    return Family("level", name, lambda rng: level_until(part, level) + white(rng), ("no_steady_state",), at_least)


def _levels() -> list[Family]:
    families = []
    for level, (beginning, late) in LEVELS.items():
        families += [_beginning(sign * level, part, beginning) for part in (0.1, 0.25, 0.45) for sign in (1, -1)]
        families += [_late(level, part, late) for part in (0.6, 0.75, 0.88)]
    return families


NOT_NONE = ("flat", "warmup", "slowdown")

FAMILIES = [
    *_levels(),
    Family("ramp", "falls by 50 %, constant 15 steps", lambda r: _decay(0.5, 15) + white(r), ("warmup",), 0.98),
    Family("ramp", "falls by 10 %, constant 60 steps", lambda r: _decay(0.1, 60) + white(r), ("warmup",), 0.95),
    Family("ramp", "drifts by 5 % over the launch", lambda r: _drift(0.05) + white(r), ("no_steady_state",), 0.9),
    Family("ramp", "drifts by 10 % over the launch", lambda r: _drift(0.1) + white(r), ("no_steady_state",), 0.98),
    Family("noise", "Gaussian 0.5 %", white, ("flat",), 0.98),
    Family("noise", "Gaussian 3 %", lambda r: white(r, sigma=0.03), ("flat",), 0.98),
    Family("noise", "Gaussian 10 %", lambda r: white(r, sigma=0.1), ("flat",), 0.98),
    Family("noise", "Gaussian 0.5 %, 2000 steps", lambda r: white(r, 2000), ("flat",), 0.98),
    Family("noise", "Gaussian 0.5 %, 60 steps", lambda r: white(r, 60), ("flat",), 0.98),
    Family("noise", "Gaussian 5 %, 36 steps", lambda r: white(r, 36, 0.05), ("flat",), 0.88),
    Family("noise", "AR(0.3) 0.5 %", lambda r: correlated(r, by=0.3), ("flat",), 0.98),
    Family("noise", "AR(0.3) 3 %", lambda r: correlated(r, sigma=0.03, by=0.3), ("flat",), 0.98),
    Family("noise", "AR(0.5) 0.5 %", correlated, ("flat",), 0.98),
    Family("noise", "AR(0.5) 3 %", lambda r: correlated(r, sigma=0.03), ("flat",), 0.97),
    Family("noise", "AR(0.8) 0.5 %", lambda r: correlated(r, by=0.8), ("flat",), 0.92),
    Family("noise", "AR(0.8) 3 %", lambda r: correlated(r, sigma=0.03, by=0.8), ("flat",), 0.8),
    Family("noise", "AR(0.8) 3 %, 2000 steps", lambda r: correlated(r, 2000, 0.03, 0.8), ("flat",), 0.85),
    Family("noise", "Student t, 2 degrees", lambda r: SIGMA * r.standard_t(2, STEPS), ("flat",), 0.98),
    Family("noise", "log-normal spikes, 3 % of steps", lambda r: white(r) + _spikes(r), ("flat",), 0.98),
    Family("noise", "one step in 50 twice as long", lambda r: white(r) + every(50, 1, 0.7), ("flat",), 0.98),
    Family("noise", "three steps in 50 twice as long", lambda r: white(r) + every(50, 3, 0.7), ("flat",), 0.95),
    Family("noise", "one step in 7 twice as long", lambda r: white(r) + every(7, 1, 0.7), ("flat",), 0.98),
    Family("noise", "clock of 1 µs at 33 µs", _coarse, ("flat",), 0.98),
    Family("throttled by 20 %", "2 of 40 steps", lambda r: white(r) + every(40, 2, 0.2), NOT_NONE, 0.98),
    Family("throttled by 20 %", "8 of 40 steps", lambda r: white(r) + every(40, 8, 0.2), ("no_steady_state",), 0.98),
    Family("throttled by 20 %", "20 of 40 steps", lambda r: white(r) + every(40, 20, 0.2), ("no_steady_state",), 0.98),
    Family("throttled by 20 %", "5 of 100 steps", lambda r: white(r) + every(100, 5, 0.2), NOT_NONE, 0.98),
    Family(
        "throttled by 20 %", "20 of 100 steps", lambda r: white(r) + every(100, 20, 0.2), ("no_steady_state",), 0.98
    ),
    Family(
        "throttled by 20 %", "50 of 100 steps", lambda r: white(r) + every(100, 50, 0.2), ("no_steady_state",), 0.98
    ),
    Family("throttled by 20 %", "5 of 10 steps", lambda r: white(r) + every(10, 5, 0.2), NOT_NONE, 0.9),
    Family(
        "throttled by 20 %",
        "half the time, runs of 100, 3 % noise, 2000 steps",
        lambda r: white(r, 2000, 0.03) + random_modes(r, 2000, 0.2, 100),
        ("no_steady_state",),
        0.95,
    ),
]
