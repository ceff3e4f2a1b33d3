"""The contract of a sensor: one source of one quantity."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kit.profile.sensor import SensorReport


class Reading(NamedTuple):
    """One value, stamped on CLOCK_MONOTONIC_RAW. Energy and time sensors read cumulative counters."""

    at_ns: int
    value: float | None  # null: this one read failed; never 0 in its place


class Sensor(Protocol):
    """Opened in the sampler's process, read at 10 Hz at most."""

    @property
    def name(self) -> str:
        """Unique name, as in the profile."""

    def probe(self) -> SensorReport:
        """Say measured, modelled or unavailable, and why. Never raises."""

    def read(self) -> Reading:
        """Read once. Only called if `probe()` did not say unavailable."""

    def close(self) -> None:
        """Release what is held."""
