"""What `kit doctor` finds: what a measurement needs, whether it is here, and what would mend it."""

from __future__ import annotations

import msgspec

from kit.profile.identity import Container
from kit.profile.schema import ObserverOverhead
from kit.profile.sensor import SensorReport


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a measurement needs, whether it is here, and what would mend it."""

    subject: str
    here: bool
    detail: str


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `kit doctor` looks at."""

    cpus: list[int]
    container: Container
    backends: list[Finding]
    data: Finding
    clocks: list[Finding]
    sensors: list[SensorReport]


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What `kit doctor --observer` finds."""

    overhead: ObserverOverhead
    sampler_cpu_pct: float | None  # percent of one CPU, over the steady phase
    samples_per_s: float | None
    reason: str | None  # why the sampler's numbers are null
