"""Every sensor of this machine, the ones that cannot be read here included.

edge ├ lead-in ┤├ timed step ┤├ timed step ┤ … edge      a counter: what happened in the block is their difference
      sampler:   .    .    .    .    .    .               what has no counter, read beside the steps
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from kit.profile.sensor import SensorReport
from kit.sensors.protocol import FAILURES, EdgeSource, Sensor, found_by


class EdgeCounters:
    """Every counter source of this folder, open for the process that asks. Never raises.

    Args:
        cpus: CPUs that this process may use; machine-wide times are of these alone.
    """

    def __init__(self, cpus: Sequence[int]) -> None:
        self._sources = found_by("open_edges", lambda report: EdgeSource([report], None), cpus)
        self.reports: list[SensorReport] = [report for source in self._sources for report in source.reports]
        self._read = [(source.read, len(source.reports)) for source in self._sources if source.read is not None]
        self.names: tuple[str, ...] = tuple(report.name for report in self.reports if report.status == "measured")

    def read(self) -> tuple[int | None, ...]:
        """Return one value for each of `names`; None where this one read failed."""
        values: list[int | None] = []
        for read, count in self._read:
            try:
                values += read()
            except FAILURES:
                values += [None] * count
        return tuple(values)


def sampled_sensors() -> list[Sensor]:
    """Open what the sampler reads, unavailable sensors included. Never raises."""
    return found_by("open_sampled", Sensor)


def probe_all() -> list[SensorReport]:
    """Return what each sensor says of itself here: edge counters, then sampled ones. Never raises."""
    edges = EdgeCounters(sorted(os.sched_getaffinity(0)))
    return [*edges.reports, *(sensor.probe() for sensor in sampled_sensors())]
