"""Counters that the measured process reads itself at the edges of a block; nothing runs beside a step for them.

edge ├ lead-in ┤├ timed step ┤├ timed step ┤ … edge      what happened in the block: their difference
"""

from __future__ import annotations

from collections.abc import Sequence

from kit.profile.sensor import SensorReport
from kit.sensors.protocol import FAILURES, EdgeSource, found_by


class EdgeCounters:
    """Every counter source of this folder, open for the process that asks. Never raises.

    Args:
        cpus: CPUs that this process may use; machine-wide times are of these alone.
    """

    def __init__(self, cpus: Sequence[int]) -> None:
        self._sources = found_by("open_edges", lambda report: EdgeSource([report], None), cpus)
        self.reports: list[SensorReport] = [report for source in self._sources for report in source.reports]
        self._read = [(source.read, len(source.reports)) for source in self._sources if source.read is not None]
        self.names: tuple[str, ...] = tuple(one.name for one in self.reports if one.status == "measured")

    def read(self) -> tuple[int | None, ...]:
        """Return one value for each of `names`; None where this one read failed."""
        values: list[int | None] = []
        for read, count in self._read:
            try:
                values += read()
            except FAILURES:
                values += [None] * count
        return tuple(values)
