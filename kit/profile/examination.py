"""What `kit doctor` finds: what a measurement needs, whether it is here, and what would mend it."""

from __future__ import annotations

import msgspec

from kit.profile.identity import Container
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
