"""What a profile says of each sensor: what it reads, how well, and whether it could be read at all."""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.int64 import Int64

SensorStatus = Literal["measured", "modelled", "unavailable"]


class SensorReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a sensor's `probe()`."""

    name: str  # "rapl.package-0", "nvml.0.energy", "cpu.utilization"
    quantity: str  # "energy", "power", "utilization", "memory", "frequency", "throttling"
    unit: str  # "J", "W", "%", "B", "MHz", "ns"
    scope: str  # what is included: "package 0, all processes", "process tree", "machine", "GPU 0 board"
    source: str  # file, call or counter it is read from
    status: SensorStatus
    reason: str | None = None  # always set when unavailable: which obstacle, and what would remove it
    update_period_ns: Int64 | None = None  # measured or documented period between fresh values
