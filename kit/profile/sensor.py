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
    scope: str  # what is included: "package 0, all processes", "worker", "machine", "GPU 0"
    source: str  # file, call or counter it is read from
    status: SensorStatus
    counter: bool = False  # cumulative: a difference of two readings says what happened between them
    sampled: bool = False  # read by the sampler while steps run; else by the worker at the edges of its blocks
    device_id: str | None = None  # PCI bus id of a GPU's sensor
    reason: Reason | None = None  # unavailable: the obstacle; modelled: who found so
    update_period_ns: Int64 | None = None  # measured or documented period between fresh values
    mean_over_ns: Int64 | None = None  # each value is a mean over this time before it; null: of its moment, or unknown
    lag_max_ns: Int64 | None = None  # its lag is unknown, at most this, and in the error of joules; null: no lag


class SensorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What one sensor made of loads that began and ended (`kit.stats.step_response`). Null: `reason` says why.

    What was read and when the loads were is kept, so that a response can be judged again. Times are on
    CLOCK_MONOTONIC_RAW.
    """

    sensor: str
    device_id: str | None  # PCI bus id
    cell: str  # key of the load
    read_ns: Int64 | None = None  # that a reading takes, the median
    delay_ns: Int64 | None = None  # dead time
    window_ns: Int64 | None = None  # of its moving mean
    lag_ns: Int64 | None = None  # delay + window / 2: by so much its values lie behind the truth
    lag_low_ns: Int64 | None = None  # the smallest that one load shows,
    lag_high_ns: Int64 | None = None  # and the largest
    period_ns: Int64 | None = None  # between fresh values
    spacing_ns: Int64 | None = None  # between readings
    before: float | None = None  # levels, in the sensor's unit; of a counter of joules in watts
    load: float | None = None
    after: float | None = None
    reason: Reason | None = None
    loads: list[tuple[Int64, Int64]] = []  # begin and end of each
    at_ns: list[Int64] = []
    values: list[float | None] = []  # null: this read failed


class SensorSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one sampled sensor read during a launch's blocks."""

    mean: float
    max: float
    unit: str
    samples: Int64


EnergyKind = Literal["steady", "compile", "fit"]
# How far a figure can be trusted, best first.
Tier = Literal["external_meter", "device_counter", "integrated_power", "modelled"]
NO_SENSOR = "none"  # for a long block that only an external meter may have seen


class Energy(msgspec.Struct, frozen=True, kw_only=True):
    """Energy from one sensor over a part of a launch, or why there is none.

    Idle is what the sensor showed while no worker was alive, before the round's first began and after its last ended.
    """

    sensor: str
    joules_j: float | None
    window_ns: Int64 | None  # that the joules cover: within the block, as a rule from one update to another
    samples: Int64  # trained or inferred in the block; 0: of a compilation
    block_ns: Int64
    device_id: str | None = None  # PCI bus id of a GPU's sensor
    reason: Reason | None = None
    # One long block; from the build to the first step done; all blocks of a fit, its references left out.
    kind: EnergyKind = "steady"
    tier: Tier | None = None  # null: no sensor saw the block
    method: str | None = None  # a code: "counter_between_updates", "power_trapezoids", "between_readings"
    updates: Int64 | None = None  # fresh values of the sensor that were seen in the window
    error_fraction: float | None = None  # of the joules: their largest error, the sensor's own left out
    begin_ns: Int64 | None = None  # of the block, on CLOCK_MONOTONIC_RAW
    steps: Int64 | None = None
    power_max_w: float | None = None  # between two readings; null: they do not show it
    idle_before_w: float | None = None
    idle_after_w: float | None = None
    idle_error_fraction: float | None = None  # of either
    idle_reason: Reason | None = None  # why one of them is null
    align_error_ns: Int64 | None = None  # of an external meter: how far its readings may be off the run's clock
    warming_c_per_s: float | None = None  # slope of the GPU's temperature in a long block; null: no sensor of it
    idle_processes: Int64 | None = None  # others that computed on the GPU then; null: unknown
