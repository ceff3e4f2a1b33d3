"""Which rounds have joules, how long they take, and the stretches of idle around them.

idle │ workers start … take turns … long blocks … end │ idle       of a round with joules
├─ no worker alive ─┤                                 ├─ again ─┤
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kit.clock import now_ns
from kit.devices import DEVICES
from kit.profile.cell import Cell
from kit.profile.instruments import SensorReport
from kit.profile.unfinished import RunPlan
from kit.runner.interrupt import StopFlag
from kit.sensors.sampler import PERIOD_NS, Sampling
from kit.stats.window_energy import UPDATES_PLANNED, WINDOW_MIN_NS, Window

# The period of a sensor that does not say how often it is fresh: known boards take 20 to 100 ms.
PERIOD_UNKNOWN_NS = 100_000_000
# The first and the last update of a block are waited for; twice, as ticks of the sampler come late.
ALIGNED_ENDS = 4
IDLE_LEAST_NS, IDLE_UPDATES = 3_000_000_000, 20
LOOK_EVERY_S = 0.5


class Idle(NamedTuple):
    """The stretches of a round in which no worker was alive."""

    before: Window
    after: Window


def long_block_s(sensors: Sequence[SensorReport], asked_s: float = 0.0) -> float:
    """Return how long a block has to be for these sensors: a hundred updates, ten seconds, and what alignment takes.

    What does not count at its begin comes on top.
    """
    period_ns = _period_ns(sensors)
    memory_ns = max((max(sensor.mean_over_ns or 0, sensor.lag_max_ns or 0) for sensor in sensors), default=0)
    aligned_ns = ALIGNED_ENDS * (period_ns + PERIOD_NS)
    needed_ns = max(WINDOW_MIN_NS, UPDATES_PLANNED * period_ns) + memory_ns + aligned_ns
    return max(asked_s, round(needed_ns / 1e9, 1))


def idle_s(sensors: Sequence[SensorReport]) -> float:
    """Return how long a stretch of idle is."""
    counters = [sensor for sensor in sensors if sensor.quantity == "energy" and sensor.status != "unavailable"]
    lag_max_ns = max((sensor.lag_max_ns or 0 for sensor in sensors if sensor.status != "unavailable"), default=0)
    return (max(IDLE_LEAST_NS, IDLE_UPDATES * _period_ns(counters)) + lag_max_ns) / 1e9


def planned_s(asked_s: float | None, sensors: Sequence[SensorReport], cells: Iterable[Cell]) -> float:
    """Return how long blocks for energy are, 0: there are none; at least what is asked for.

    Where no sensor tells a device of the cells there is one only if it is asked for: an external meter may.
    """
    names = [sensor.name for sensor in sensors if sensor.status != "unavailable"]
    whole = {name for kind in {cell.device for cell in cells} for name in DEVICES[kind].joule_sensors_among(names)}
    device_sensors = [sensor for sensor in sensors if sensor.name in whole]
    return long_block_s(device_sensors, asked_s or 0.0) if asked_s or (asked_s is None and whole) else 0.0


def has_energy(plan: RunPlan, number: int) -> bool:
    """Return whether workers have a long block in this round.

    Rounds after the last planned one are in place of disturbed ones, unless they are for a precision.
    """
    steps, suite = plan.suite.plan, plan.suite
    is_last = number >= suite.rounds - 1 if suite.precision_pct is None else number == suite.rounds - 1
    return steps.energy_s > 0 and (steps.energy_rounds == "all" or is_last)


def stay_idle(sampling: Sampling, seconds: float, stop: StopFlag) -> Window:
    """Let the sampler see the machine without workers for so long; return when.

    Raises:
        KeyboardInterrupt: it was asked for.
    """
    sampling.wait_for_first()
    begin_ns = now_ns()
    while (left_s := seconds - (now_ns() - begin_ns) / 1e9) > 0:
        stop.check()
        time.sleep(min(left_s, LOOK_EVERY_S))
    return begin_ns, now_ns()


def _period_ns(sensors: Sequence[SensorReport]) -> int:
    return max((sensor.update_period_ns or PERIOD_UNKNOWN_NS for sensor in sensors), default=0)
