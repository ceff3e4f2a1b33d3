"""What the sampler writes, line by line, and reading it back.

    {"kind":"header","pid":71,"period_ns":100000000,"reports":[...]}      what is sampled, in this order
    [at_ns, sampler_cpu_ns, [[at_ns, value], null, ...]]                  one tick; null: not read at this tick
    ...
    {"kind":"footer","ended":"told to end","at_ns":...}  absent when the sampler was killed

Each line goes to the file as soon as it is there: a killed sampler loses at most the tick it was writing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec

from kit.profile.sensor import SensorReport
from kit.sensors.protocol import Reading

# A counter gives a rate from two readings on.
MIN_TICKS = 2


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """First line."""

    pid: int
    period_ns: int
    reports: list[SensorReport]
    kind: Literal["header"] = "header"


class Tick(msgspec.Struct, frozen=True, array_like=True):
    """One look at all sensors. `readings` follow the header's reports."""

    at_ns: int
    sampler_cpu_ns: int  # what the sampler itself has used since it began
    readings: list[tuple[int, float | None] | None]


class Footer(msgspec.Struct, frozen=True, kw_only=True):
    """Last line of a sampler that ended by itself."""

    ended: str  # why
    at_ns: int
    kind: Literal["footer"] = "footer"


@dataclass(frozen=True)
class Samples:
    """Everything one sampler saw.

    Attributes:
        reports: the sensors, in the order of each tick's readings.
        ticks: by time.
        ended: why the sampler ended, or gave nothing.
        covered_to_ns: until when it looked.
        period_ns: between two deadlines.
    """

    reports: list[SensorReport] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    ended: str = "no sampler ran"
    covered_to_ns: int = 0
    period_ns: int = 0

    def within(self, begin_ns: int, end_ns: int) -> list[Tick]:
        """Ticks inside a window."""
        return [tick for tick in self.ticks if begin_ns <= tick.at_ns <= end_ns]

    def missed(self, begin_ns: int, end_ns: int) -> int:
        """Deadlines inside a window that passed while the sampler did not get a CPU."""
        return sum(
            max(0, round((later.at_ns - earlier.at_ns) / self.period_ns) - 1)
            for earlier, later in pairwise(self.within(begin_ns, end_ns))
        )

    def report(self, name: str) -> SensorReport | None:
        """What a sensor says of itself."""
        return next((report for report in self.reports if report.name == name), None)

    def series(self, name: str) -> list[Reading]:
        """Successful readings of one sensor, by time; a read that failed is left out."""
        index = next((i for i, report in enumerate(self.reports) if report.name == name), None)
        if index is None:
            return []
        entries = (tick.readings[index] for tick in self.ticks if index < len(tick.readings))
        return [Reading(*entry) for entry in entries if entry is not None and entry[1] is not None]

    def gap(self, begin_ns: int, end_ns: int) -> str | None:
        """Why nothing can be said of a window; None when it is covered."""
        if self.covered_to_ns < end_ns:
            return self.ended
        inside = len(self.within(begin_ns, end_ns))
        if inside < MIN_TICKS:
            seconds = (end_ns - begin_ns) / 1e9
            return f"{inside} samples lie in the {seconds:.3g} s of the steady phase, {MIN_TICKS} are needed"
        return None


def read_samples(file: Path) -> Samples:
    """Read what a sampler wrote, whole or cut off. Never raises: what is missing is said in `ended`."""
    try:
        lines = file.read_bytes().splitlines(keepends=True)
    except OSError as error:
        return Samples(ended=f"the sampler's file cannot be read: {error.strerror}")
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()  # killed while it wrote
    if not lines:
        return Samples(ended="the sampler ended before it was ready")
    ticks: list[Tick] = []
    footer = None
    try:
        header = msgspec.json.decode(lines[0], type=Header)
        for line in lines[1:]:
            if line.startswith(b"["):
                ticks.append(msgspec.json.decode(line, type=Tick))
            else:
                footer = msgspec.json.decode(line, type=Footer)
    except msgspec.MsgspecError as error:
        return Samples(ended=f"the sampler's file is damaged after {len(ticks)} ticks: {error}")
    if footer is not None:
        covered_to_ns, ended = footer.at_ns, f"the sampler ended: {footer.ended}"
    else:
        covered_to_ns, ended = ticks[-1].at_ns if ticks else 0, "the sampler was killed"
    return Samples(header.reports, ticks, ended, covered_to_ns, header.period_ns)
