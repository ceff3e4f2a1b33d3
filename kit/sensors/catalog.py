"""Every sensor of this machine, the ones that cannot be read here included."""

from __future__ import annotations

import os

from kit.profile.sensor import SensorReport
from kit.sensors.edges import EdgeCounters
from kit.sensors.protocol import Sensor, found_by


def sampled_sensors() -> list[Sensor]:
    """Open what the sampler reads, unavailable sensors included. Never raises."""
    return found_by("open_sampled", Sensor)


def probe_all() -> list[SensorReport]:
    """Return what each sensor says of itself here: edge counters, then sampled ones. Never raises."""
    edges = EdgeCounters(sorted(os.sched_getaffinity(0)))
    return [*edges.reports, *(sensor.probe() for sensor in sampled_sensors())]
