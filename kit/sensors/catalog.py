"""Every sensor of this machine, including those that cannot be read here.

edge ├ lead-in ┤├ timed step ┤├ timed step ┤ … edge      counters: the difference of both edges is the block's
      .    .    .    .    .    .    .    .    .          the sampler reads the other sensors while steps run
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Sequence
from typing import TypeVar

import kit.sensors
from kit.profile.reason import Reason, reason
from kit.profile.sensor import SensorReport
from kit.sensors.protocol import FAILURES, EdgeSource, Sensor, measured

Source = TypeVar("Source", EdgeSource, Sensor)


class EdgeCounters:
    """The counters of this machine, opened for this process. Never raises.

    Args:
        cpus: CPUs that this process can use; times of the machine are those of these CPUs.
    """

    def __init__(self, cpus: Sequence[int]) -> None:
        self._sources = _opened("open_edges", lambda report, why: EdgeSource([report], why), cpus)
        self.reports: list[SensorReport] = [report for source in self._sources for report in source.reports]
        self.names: tuple[str, ...] = tuple(report.name for report in self.reports if report.status == "measured")

    def read(self) -> tuple[int | None, ...]:
        """Return one value for each of `names`; None if its read failed."""
        values: list[int | None] = []
        for source in self._sources:
            if source.read is None:
                continue
            try:
                values += source.read()
            except FAILURES:
                values += [None] * len(source.reports)
        return tuple(values)


def sampled_sensors() -> list[Sensor]:
    """Open the sensors that the sampler reads, including unavailable ones. Never raises."""
    return _opened("open_sampled", Sensor)


def probe_all() -> list[SensorReport]:
    """Return the report of each sensor of this machine, edge counters first. Never raises."""
    edges = EdgeCounters(sorted(os.sched_getaffinity(0)))
    return [*edges.reports, *(sensor.report for sensor in sampled_sensors())]


def _opened(opener: str, failed: Callable[[SensorReport, Reason], Source], *arguments: object) -> list[Source]:
    """Call the function `opener` of every file in this folder that has it, in the order of their names.

    If one fails, as drivers do in ways that no list has, `failed` makes the source that takes its place.
    """
    sources: list[Source] = []
    for name in sorted(module.name for module in pkgutil.iter_modules(kit.sensors.__path__)):
        try:
            module = importlib.import_module(f"{__package__}.{name}")
            if hasattr(module, opener):
                sources += getattr(module, opener)(*arguments)
        except Exception as error:
            why = reason("opening_failed", error=f"{type(error).__name__}: {error}")
            sources.append(failed(measured(name, "", "", "", ""), why))
    return sources
