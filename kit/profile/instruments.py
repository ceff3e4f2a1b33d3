"""What a profile says of its instruments: how good its clock is, and of each sensor what it reads and how well."""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.fields import (
    Count,
    Divisor,
    DivisorNs,
    EnergyJ,
    ErrorShare,
    FewSamples,
    MeanNs,
    Positive,
    Quantity,
    Reason,
    RepeatCount,
    Signed,
    SignedSpanNs,
    SpanNs,
    StampNs,
    TimeNs,
    Watts,
)

ClockSource = Literal["monotonic_raw", "tsc", "cntvct"]
ClockChoice = Literal["auto", "monotonic_raw", "tsc", "cntvct"]
SensorStatus = Literal["measured", "modelled", "unavailable"]
EnergyKind = Literal["steady", "compile", "fit"]
# How far a figure can be trusted, best first.
Tier = Literal["external_meter", "device_counter", "integrated_power", "modelled"]
NO_SENSOR = "none"  # for a long block that only an external meter may have seen


class Distribution(msgspec.Struct, frozen=True, kw_only=True, gc=False):  # it holds nothing that could refer to it
    """Repeated measurements of one interval."""

    min_ns: MeanNs
    median_ns: MeanNs
    p99_ns: MeanNs
    p999_ns: MeanNs
    max_ns: MeanNs
    mean_ns: MeanNs
    count: RepeatCount


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Counter ticks against CLOCK_MONOTONIC_RAW: tightest of `brackets` two-sided reads `span_ns` apart."""

    ticks_per_s: Divisor
    span_ns: TimeNs
    uncertainty_ppm: Quantity  # bracket widths over the span
    brackets: Positive


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """How good the clock is, measured here and now. Overhead is reported, never subtracted."""

    source: ClockSource  # what a stamp reads
    source_reason: str  # why this source, and why not a finer one
    resolution_ns: DivisorNs  # smallest positive change seen between reads
    null_interval: Distribution  # two reads back to back, in C
    path_cost: Distribution  # one stamp as the step loop makes it, through Python
    calibration: Calibration | None
    drift_ppm: Quantity | None  # disagreement of calibrations at start and end; null for a source that needs none
    shortest_step_ns: SpanNs  # 1000 median null intervals; a shorter step may not be timed singly


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
    update_period_ns: TimeNs | None = None  # measured or documented period between fresh values
    mean_over_ns: SpanNs | None = None  # each value is a mean over this time before it; null: of its moment, or unknown
    lag_max_ns: SpanNs | None = None  # its lag is unknown, at most this, and in the error of joules; null: no lag


class SensorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What one sensor made of loads that began and ended (`kit.stats.step_response`). Null: `reason` says why.

    What was read and when the loads were is kept, so that a response can be judged again. Times are on
    CLOCK_MONOTONIC_RAW.
    """

    sensor: str
    device_id: str | None  # PCI bus id
    cell: str  # key of the load
    read_ns: SpanNs | None = None  # that a reading takes, the median
    delay_ns: SignedSpanNs | None = None  # dead time
    window_ns: SpanNs | None = None  # of its moving mean
    lag_ns: SignedSpanNs | None = None  # delay + window / 2: by so much its values lie behind the truth
    lag_low_ns: SignedSpanNs | None = None  # the smallest that one load shows,
    lag_high_ns: SignedSpanNs | None = None  # and the largest
    period_ns: SpanNs | None = None  # between fresh values
    spacing_ns: SpanNs | None = None  # between readings
    before: Signed | None = None  # levels, in the sensor's unit; of a counter of joules in watts
    load: Signed | None = None
    after: Signed | None = None
    reason: Reason | None = None
    loads: list[tuple[StampNs, StampNs]] = []  # begin and end of each
    at_ns: list[StampNs] = []
    values: list[Signed | None] = []  # null: this read failed


class SensorSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one sampled sensor read during a launch's blocks."""

    mean: Signed
    max: Signed
    unit: str
    samples: FewSamples


class SensorReadings(msgspec.Struct, frozen=True, kw_only=True):
    """What one sampled sensor read during a launch's long block, in order of time."""

    sensor: str
    unit: str
    at_ns: list[SpanNs] = []  # since the block began
    values: list[Signed] = []
    readings_per_value: Positive = 1  # a value and its time are means of so many successive readings; the last of fewer


class Energy(msgspec.Struct, frozen=True, kw_only=True):
    """Energy from one sensor over a part of a launch, or why there is none.

    Idle is what the sensor showed while no worker was alive, before the round's first began and after its last ended.
    """

    sensor: str
    joules_j: EnergyJ | None
    window_ns: SpanNs | None  # that the joules cover: within the block, as a rule from one update to another
    samples: Count  # trained or inferred in the block; 0: of a compilation
    block_ns: SpanNs
    device_id: str | None = None  # PCI bus id of a GPU's sensor
    reason: Reason | None = None
    # One long block; from the build to the first step done; all blocks of a fit, its references left out.
    kind: EnergyKind = "steady"
    tier: Tier | None = None  # null: no sensor saw the block
    method: str | None = None  # a code: "counter_between_updates", "power_trapezoids", "between_readings"
    updates: Count | None = None  # fresh values of the sensor that were seen in the window
    error_fraction: ErrorShare | None = None  # of the joules: their largest error, the sensor's own left out
    begin_ns: StampNs | None = None  # of the block, on CLOCK_MONOTONIC_RAW
    steps: Count | None = None
    power_max_w: Watts | None = None  # between two readings; null: they do not show it
    idle_before_w: Watts | None = None
    idle_after_w: Watts | None = None
    idle_error_fraction: ErrorShare | None = None  # of either
    idle_reason: Reason | None = None  # why one of them is null
    align_error_ns: SpanNs | None = None  # of an external meter: how far its readings may be off the run's clock
    warming_c_per_s: float | None = None  # slope of the GPU's temperature in a long block; null: no sensor of it
    idle_processes: Count | None = None  # others that computed on the GPU then; null: unknown
