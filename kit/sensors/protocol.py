"""What a source file of this folder gives, and how it is found: to add a sensor is to write one file here.

    open_edges(cpus) -> list[EdgeSource]    counters, read by the measured process itself at the edges of its blocks
    open_sampled()   -> list[Sensor]        what has no counter at the process, read by the sampler beside the steps

A source that cannot be read here is reported as unavailable, with the reason; it is never left out.
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
from kit.profile.reason import Reason, reason
from kit.profile.sensor import SensorReport

Source = TypeVar("Source")

# What a read or a parse of a small file of /proc or /sys may raise.
FAILURES = (OSError, ValueError, IndexError)


class Reading(NamedTuple):
    """One value, stamped on CLOCK_MONOTONIC_RAW."""

    at_ns: int
    value: float | None  # null: this one read failed; never 0 in its place


class EdgeSource(NamedTuple):
    """Counters that one read gives, in the order of their reports; no `read` where they are unavailable."""

    reports: list[SensorReport]
    read: Callable[[], Sequence[int | None]] | None


class Sensor:
    """One sampled quantity.

    Args:
        report: what `probe` answers.
        value: reads the source; not given where the report says unavailable.
    """

    def __init__(self, report: SensorReport, value: Callable[[], float | None] | None = None) -> None:
        self.report = replace(report, sampled=True)
        self._value = value

    @property
    def is_available(self) -> bool:
        """Whether `read` can be called."""
        return self._value is not None

    def probe(self) -> SensorReport:
        """Say measured, modelled or unavailable, and why. Never raises."""
        return self.report

    def read(self) -> Reading:
        """Read once, stamped halfway through the read: some drivers take milliseconds to answer."""
        assert self._value is not None
        before_ns = now_ns()
        try:
            value = self._value()
        except Exception:  # drivers fail in ways that nobody listed
            value = None
        return Reading((before_ns + now_ns()) // 2, value)


def unavailable(report: SensorReport, why: Reason) -> SensorReport:
    """Return the report of a source that cannot be read here."""
    return replace(report, status="unavailable", reason=why)


def file_obstacle(file: Path, error: Exception) -> Reason:
    """Return why a file cannot be read, or holds something else than it should."""
    if isinstance(error, OSError):
        return reason("file_not_readable", file=str(file), error=error.strerror or str(error))
    return reason("file_not_as_expected", file=str(file))


def counters_in(
    file: Path, parse: Callable[[bytes], Sequence[int]], reports: list[SensorReport], size_b: int = 4096
) -> EdgeSource:
    """Return counters that `parse` finds in a file of at most `size_b` bytes; unavailable where that fails now.

    The file is held open until the process ends: a read then takes 1 to 6 µs, and has fresh content.
    """
    try:
        held = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        parse(os.pread(held, size_b, 0))
    except FAILURES as error:
        return EdgeSource([unavailable(report, file_obstacle(file, error)) for report in reports], None)
    return EdgeSource(reports, lambda: parse(os.pread(held, size_b, 0)))


def now_ns() -> int:
    """Return nanoseconds on CLOCK_MONOTONIC_RAW, the time base of every launch. (Without the timer of `kit.clock`.)"""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def found_by(opener: str, failed: Callable[[SensorReport], Source], *arguments: object) -> list[Source]:
    """Return what the function `opener` of every file in this folder opens, by file name.

    A driver can fail in ways that nobody listed: that costs one source, which `failed` then stands for.
    """
    sources: list[Source] = []
    for name in sorted(module.name for module in pkgutil.iter_modules(kit.sensors.__path__)):
        try:
            opened: Any = getattr(importlib.import_module(f"{__package__}.{name}"), opener, None)
            sources += opened(*arguments) if opened else []
        except Exception as error:
            why = reason("opening_failed", error=f"{type(error).__name__}: {error}")
            report = SensorReport(name=name, quantity="", unit="", scope="", source="", status="measured")
            sources.append(failed(unavailable(report, why)))
    return sources
