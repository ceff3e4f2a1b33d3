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
    reason: Reason | None = None  # of unavailable: which obstacle there is; of modelled: who found so
    update_period_ns: Int64 | None = None  # measured or documented period between fresh values
    mean_over_ns: Int64 | None = None  # each value is a mean over so long before it; null: of its moment, or not known
    lag_max_ns: Int64 | None = None  # its lag is not known and is taken to be no longer: joules bear it; null: no lag


class SensorSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one sampled sensor read during a launch's blocks."""

    mean: float
    max: float
    unit: str
    samples: Int64


EnergyOf = Literal["steady", "compile", "fit"]
# How much a figure can be held to, best first.
Tier = Literal["external_meter", "device_counter", "integrated_power", "modelled"]


NO_SENSOR = "none"  # of a long block that only an external meter may have seen


class Energy(msgspec.Struct, frozen=True, kw_only=True):
    """Energy from one sensor over a part of a launch, or why there is none.

    Idle is what the sensor showed while no member was alive, before the round's first began and after its last ended.
    """

    sensor: str
    joules_j: float | None
    window_ns: Int64 | None  # that the joules are of: within the block, as a rule from one update to another
    samples: Int64  # trained or inferred in the block; 0: of a compilation
    block_ns: Int64
    device_id: str | None = None  # PCI bus id, of a board's sensor
    reason: Reason | None = None
    # One long block; from the build to the first step done; all blocks of a fit, its references left out.
    of: EnergyOf = "steady"
    tier: Tier | None = None  # null: not recorded, as up to schema 2.4
    method: str | None = None  # a code: "counter_between_updates", "power_trapezoids", "between_readings"
    updates: Int64 | None = None  # fresh values of the sensor that were seen in the window
    error_share: float | None = None  # of the joules: they are at most so far off, the sensor's own error left out
    begin_ns: Int64 | None = None  # of the block, on CLOCK_MONOTONIC_RAW
    steps: Int64 | None = None
    power_max_w: float | None = None  # between two readings; null: they do not show it
    idle_before_w: float | None = None
    idle_after_w: float | None = None
    idle_error_share: float | None = None  # of either
    idle_reason: Reason | None = None  # why one of them is null
    align_error_ns: Int64 | None = None  # of an external meter: how far its readings may be off the run's clock
    warming_c_per_s: float | None = None  # slope of the board's temperature in a long block; null: no sensor of it
    idle_processes: Int64 | None = None  # others that computed on the board then; null: not known
