"""What a profile says of each sensor: what it reads, how well, and whether it could be read at all."""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.cell import Int64
from kit.profile.reason import Reason

SensorStatus = Literal["measured", "modelled", "unavailable"]


class SensorReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a sensor's `probe()`."""

    name: str  # "process.cpu_ns", "rapl.package-0", "nvml.0.energy"
    quantity: str  # "energy", "power", "utilization", "memory", "frequency", "throttling", "temperature", "faults"
    unit: str  # "J", "W", "%", "B", "MHz", "ns", "1"
    scope: str  # what is included: "package 0, all processes", "member", "machine", "GPU 0 board"
    source: str  # file, call or counter it is read from
    status: SensorStatus
    counter: bool = False  # cumulative: a difference of two readings says what happened between them
    sampled: bool = False  # read beside the steps by the sampler; else by the member at the edges of its blocks
    device_id: str | None = None  # PCI bus id, of a board's sensor
    reason: Reason | None = None  # always set when unavailable: which obstacle there is
    update_period_ns: Int64 | None = None  # measured or documented period between fresh values
    mean_over_ns: Int64 | None = None  # each value is a mean over so long before it; null: of its moment, or not known


class SensorSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one sampled sensor read during a launch's blocks."""

    mean: float
    max: float
    unit: str
    samples: Int64


class Energy(msgspec.Struct, frozen=True, kw_only=True):
    """Energy from one sensor over one long block of a member, or why there is none."""

    sensor: str
    joules_j: float | None
    window_ns: Int64 | None  # from one update of the sensor to another, within the block
    samples: Int64  # trained or inferred in the block
    block_ns: Int64
    device_id: str | None = None  # PCI bus id, of a board's sensor
    reason: Reason | None = None
