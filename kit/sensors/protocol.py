"""What a file of this folder offers: `kit.sensors.catalog` calls these functions of every file that has them.

    open_edges(cpus) -> list[EdgeSource]    counters that the measured process itself reads at the edges of its blocks
    open_sampled()   -> list[Sensor]        quantities that the sampler reads while steps run

A source that cannot be read here is reported as unavailable, with the reason; it is never left out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from kit.profile.reason import Reason, reason
from kit.profile.sensor import SensorReport

# These are the errors of reading and parsing a small file of /proc or /sys.
FAILURES = (OSError, ValueError, IndexError)


class Reading(NamedTuple):
    """One value, stamped on CLOCK_MONOTONIC_RAW."""

    at_ns: int
    value: float | None  # null: this read failed; never 0 instead


class EdgeSource:
    """Counters that one `read` returns, in the order of their reports; a reason instead of `read`: unavailable."""

    def __init__(self, reports: Sequence[SensorReport], read: Callable[[], Sequence[int | None]] | Reason) -> None:
        self.reports = [_with_status(report, read) for report in reports]
        self.read = None if isinstance(read, Reason) else read


class Sensor:
    """One sampled quantity and the function that reads it; a reason instead of `value`: unavailable."""

    def __init__(self, report: SensorReport, value: Callable[[], float | None] | Reason) -> None:
        self.report = replace(_with_status(report, value), sampled=True)
        self._value = None if isinstance(value, Reason) else value

    @property
    def is_available(self) -> bool:
        """Whether `read` can be called."""
        return self._value is not None

    def read(self) -> Reading:
        """Read once, stamped halfway through the read: some drivers take milliseconds to answer."""
        assert self._value is not None
        before_ns = now_ns()
        try:
            value = self._value()
        except Exception:  # drivers fail in ways that no list has
            value = None
        return Reading((before_ns + now_ns()) // 2, value)


def measured(name: str, quantity: str, unit: str, scope: str, source: str, **more: Any) -> SensorReport:  # noqa: ANN401
    """Return the report of a sensor that measures; `more` are other fields of `SensorReport`."""
    return SensorReport(name=name, quantity=quantity, unit=unit, scope=scope, source=source, status="measured", **more)


def counters_in(
    file: Path | Reason, parse: Callable[[bytes], Sequence[int]], reports: Sequence[SensorReport], size_b: int = 4096
) -> EdgeSource:
    """Return the counters that `parse` finds in a file of at most `size_b` bytes; unavailable if that fails now.

    The file stays open until the process ends: each read takes 1 to 6 µs and has fresh content. If there is no file,
    `file` is the reason.
    """
    if isinstance(file, Reason):
        return EdgeSource(reports, file)

    def read() -> Sequence[int]:
        return parse(os.pread(held, size_b, 0))

    try:
        held = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        if len(read()) != len(reports):
            raise ValueError
    except FAILURES as error:
        return EdgeSource(reports, file_obstacle(file, error))
    return EdgeSource(reports, read)


def file_obstacle(file: Path, error: Exception) -> Reason:
    """Return why a file cannot be read, or that its content is not as expected."""
    if isinstance(error, OSError):
        return reason("file_not_readable", file=str(file), error=error.strerror or str(error))
    return reason("file_not_as_expected", file=str(file))


def read_text(file: Path) -> str:
    """Return a small file's text without white space around it; nothing if the file cannot be read."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def fields(text: str) -> dict[str, str]:
    """Return the values of the lines "name: value" of a text by their names."""
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


def now_ns() -> int:
    """Return nanoseconds on CLOCK_MONOTONIC_RAW, the time base of every launch, without `kit.clock` and its NumPy."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def _with_status(report: SensorReport, read: object) -> SensorReport:
    return replace(report, status="unavailable", reason=read) if isinstance(read, Reason) else report
