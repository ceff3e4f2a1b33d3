"""The two shapes a sensor takes: a source that a function reads, and a source that cannot be read here."""

from __future__ import annotations

from collections.abc import Callable

from kit.profile.sensor import SensorReport
from kit.sensors.protocol import Reading
from kit.sensors.stamp import now_ns


class _Reported:
    """What both shapes say of themselves."""

    _report: SensorReport

    @property
    def name(self) -> str:
        """Unique name, as in the profile."""
        return self._report.name

    def probe(self) -> SensorReport:
        """Say what was found when the source was opened, or why there is nothing to read."""
        return self._report


class Readable(_Reported):
    """A source that `value` reads. A read that raises one of `failures` is a reading of None."""

    def __init__(
        self,
        report: SensorReport,
        value: Callable[[], float | None],
        failures: tuple[type[BaseException], ...] = (OSError,),
        close: Callable[[], None] | None = None,
    ) -> None:
        self._report = report
        self._value = value
        self._failures = failures
        self._close = close

    def read(self) -> Reading:
        """Read once, stamped halfway through the read: some drivers take milliseconds to answer."""
        before_ns = now_ns()
        try:
            value = self._value()
        except self._failures:
            value = None
        return Reading((before_ns + now_ns()) // 2, value)

    def close(self) -> None:
        """Release what is held."""
        if self._close is not None:
            self._close()


class Unavailable(_Reported):
    """A source that cannot be read here, and why."""

    def __init__(self, name: str, quantity: str, unit: str, scope: str, source: str, *, reason: str) -> None:
        self._report = SensorReport(
            name=name, quantity=quantity, unit=unit, scope=scope, source=source, status="unavailable", reason=reason
        )

    def read(self) -> Reading:
        """Read nothing: a reading of None."""
        return Reading(now_ns(), None)

    def close(self) -> None:
        """Hold nothing."""
