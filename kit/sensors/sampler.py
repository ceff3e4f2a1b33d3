"""The sampler: reads what has no counter at the process ten times a second, from a process of its own.

    deadline k = start + k * period      absolute, so that a late tick delays no other
    ├── tick 0 ──┤── tick 1 ──┤── (late) ──┤── tick 3 ──┤  ...  until standard input closes

Python that ran in the measured process would take the interpreter lock from its steps; this one takes only a CPU, now
and then. It writes line by line, so that a killed sampler loses one tick:

    [report, ...]                          what is sampled, in this order
    [[at_ns, value], null, ...]            one tick; null: not read at this tick; value null: the read failed

`python -m kit.sensors.sampler > FILE`
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Sequence

import msgspec

from kit.sensors.catalog import sampled_sensors
from kit.sensors.protocol import Sensor, now_ns

# Counters update every 10 to 100 ms: reading faster costs more than it shows.
PERIOD_NS = 100_000_000
# Reading a clock frequency asks every CPU in turn, sleeping ones included: once a second.
TICKS = {"frequency": 10}


def sample(sensors: Sequence[Sensor], out: int) -> None:
    """Write a tick at every deadline until standard input closes.

    Raises:
        OSError: the file cannot be written.
    """
    encode = msgspec.json.Encoder().encode
    os.write(out, encode([sensor.probe() for sensor in sensors]) + b"\n")
    due = [0] * len(sensors)
    start_ns, tick = now_ns(), 0
    while not select.select([sys.stdin], [], [], max(0, start_ns + tick * PERIOD_NS - now_ns()) / 1e9)[0]:
        line = [sensor.read() if tick >= at else None for sensor, at in zip(sensors, due, strict=True)]
        os.write(out, encode(line) + b"\n")
        for place, sensor in enumerate(sensors):
            if tick >= due[place]:
                due[place] = tick + TICKS.get(sensor.probe().quantity, 1)
        tick = max(tick, (now_ns() - start_ns) // PERIOD_NS) + 1


def main() -> None:
    """Sample to standard output."""
    for signal_number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # of a terminal's whole group: the runner decides what they mean
        signal.signal(signal_number, signal.SIG_IGN)
    sample([sensor for sensor in sampled_sensors() if sensor.is_available], sys.stdout.fileno())


if __name__ == "__main__":
    main()
