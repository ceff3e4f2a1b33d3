"""Does the error that joules carry hold where the sensor lags? A simulation; the kit's own functions give the joules.

    python tests/bench/bench_lagging_counter.py [--draws 200] [--lag-max S]

A board's counter is fresh every 0.1 s and is read every 0.1 s by a late sampler. Before the block of a member another
one ran, at a third to three times its power; within the block the power swings with the steps and drifts by up to 1 %.
The block is as long as the kit makes it for such a sensor. What the counter adds up is not the power but

    delayed     the power of so long before
    mean        its mean over twice as long: late by so much in the mean
    capacitor   what nears the power by 1 - 1/e in so long

    given       draws in which there were joules; in the others the kit refuses them and says why
    held        those of the given whose error held the block's own joules, with the 95 % interval of that rate
                (Clopper and Pearson)
    error       the median of those that joules were given with

`--lag-max` is what the kit takes for the longest lag; 0 shows what joules are without it.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from measuring import printed
from scipy.signal import lfilter
from scipy.stats import beta

from kit.profile.instruments import Energy, SensorReport
from kit.runner.warm_up_and_blocks import long_block_s
from kit.sensors.nvml import LAG_MAX_NS
from kit.sensors.sampler import Sampled, SensorSeries

S = 1_000_000_000
UPDATE_S, SPACING_S = 0.1, 0.1
GRID_S = 0.005  # of the simulated power
BEFORE_S, AFTER_S = 40.0, 3.0
KINDS = ("delayed", "mean", "capacitor")
LAGS_S = (0.0, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0)


class Drawn(NamedTuple):
    """The kit's joules of a block, and what it drew."""

    energy: Energy
    truth_w: float


def report(lag_max_ns: int) -> SensorReport:
    """Return a board's counter as `kit.sensors.nvml` reports it."""
    return SensorReport(
        name="nvml.0.energy", quantity="energy", unit="J", scope="", source="simulated", status="measured",
        counter=True, update_period_ns=int(UPDATE_S * S), lag_max_ns=lag_max_ns,
    )  # fmt: skip


def lagging(power_w: np.ndarray, kind: str, lag_s: float) -> np.ndarray:
    """Return the power that a sensor with this lag shows."""
    steps = round(lag_s / GRID_S)
    if steps == 0:
        return power_w
    if kind == "delayed":
        return np.concatenate([np.full(steps, power_w[0]), power_w[:-steps]])
    if kind == "mean":
        joules = np.cumsum(np.concatenate([np.full(2 * steps, power_w[0]), power_w]))
        return (joules[2 * steps :] - joules[: -2 * steps]) / (2 * steps)
    kept = np.exp(-1 / steps)
    shown_w, _ = lfilter([1 - kept], [1, -kept], power_w, zi=[kept * power_w[0]])
    return np.asarray(shown_w)


def drawn(rng: np.random.Generator, kind: str, lag_s: float, lag_max_ns: int) -> Drawn:
    """Simulate one block."""
    sensor = report(lag_max_ns)
    block_s = long_block_s([sensor])
    begin_s = BEFORE_S + rng.uniform(0, UPDATE_S)
    at_s = np.arange(0, begin_s + block_s + AFTER_S, GRID_S)
    in_block = (at_s >= begin_s) & (at_s < begin_s + block_s)
    level_w = rng.uniform(80, 700)
    swing, swing_s, drift = rng.uniform(0, 0.3), rng.uniform(0.02, 0.3), rng.uniform(-0.01, 0.01)
    own_w = level_w * (1 + swing * np.sin(2 * np.pi * at_s / swing_s) + drift * (at_s - begin_s) / block_s)
    power_w = np.where(in_block, own_w, level_w * 3 ** rng.uniform(-1, 1))
    power_w[at_s >= begin_s + block_s] = 0.2 * level_w
    joules = np.concatenate([[0.0], np.cumsum(lagging(power_w, kind, lag_s)) * GRID_S])[:-1]
    reads_s = np.arange(rng.uniform(0, SPACING_S), at_s[-1], SPACING_S)
    reads_s += rng.exponential(0.004, reads_s.size)
    phase_s = rng.uniform(0, UPDATE_S)
    updated_s = np.floor((reads_s - phase_s) / UPDATE_S) * UPDATE_S + phase_s
    series = SensorSeries(sensor, (reads_s * S).astype(int).tolist(), np.interp(updated_s, at_s, joules).tolist())
    (energy,) = Sampled([series]).energy(
        "steady", [(int(begin_s * S), int((begin_s + block_s) * S))], samples=1, steps=1
    )
    return Drawn(energy, float(power_w[in_block].mean()))


def is_held(of: Drawn) -> bool:
    """Whether joules were given that are no further off than they say."""
    energy = of.energy
    if energy.joules_j is None or not energy.window_ns or energy.error_fraction is None:
        return False
    return abs(energy.joules_j / energy.window_ns * S / of.truth_w - 1) <= energy.error_fraction


def interval(hits: int, draws: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate."""
    low = float(beta.ppf(0.025, hits, draws - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.975, hits + 1, draws - hits)) if hits < draws else 1.0
    return low, high


def main() -> None:
    """Print a line for each kind of lag and its length."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--lag-max", type=float, default=LAG_MAX_NS / S, metavar="S")
    options = parser.parse_args()
    rng, lines = np.random.default_rng(1), [("lag", "kind", "given", "held", "", "95 %", "error")]
    for lag_s in LAGS_S:
        for kind in KINDS if lag_s else KINDS[:1]:
            draws = [drawn(rng, kind, lag_s, int(options.lag_max * S)) for _ in range(options.draws)]
            given = [of for of in draws if of.energy.joules_j is not None]
            held = sum(map(is_held, given))
            low, high = interval(held, len(given))
            line = (f"{lag_s:g} s", kind if lag_s else "any", str(len(given)), str(held))
            errors = [100 * (of.energy.error_fraction or 0.0) for of in given]
            shares = f"{100 * held / max(len(given), 1):.1f} %", f"{100 * low:.1f} to {100 * high:.1f} %"
            lines.append((*line, *(shares if given else "––"), f"±{np.median(errors):.1f} %" if given else "–"))
    printed(lines)


if __name__ == "__main__":
    main()
