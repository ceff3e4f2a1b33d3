"""Sources of readings: what a file of this folder offers, and every source of this machine.

    open_edges(cpus) -> list[EdgeSource]    counters that the measured process itself reads at the edges of its blocks
    open_sampled()   -> list[Sensor]        quantities that the sampler reads while steps run

edge ├ lead-in ┤├ timed step ┤├ timed step ┤ … edge      counters: the difference of both edges is the block's
      .    .    .    .    .    .    .    .    .          the sampler reads the other sensors while steps run

Every file is asked that has one of these functions. A source that cannot be read here is reported as unavailable, with
the reason; it is never left out.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

import kit.sensors
from kit.profile.fields import Reason, reason
from kit.profile.instruments import SensorReport

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


Source = TypeVar("Source", EdgeSource, Sensor)


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
