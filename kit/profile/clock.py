"""What a profile says of its clock: the certificate, and the calibrations at both ends of a launch."""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.limits import Divisor, DivisorNs, MeanNs, Positive, Quantity, Repeats, SpanNs, TimeNs

ClockSource = Literal["monotonic_raw", "tsc", "cntvct"]
ClockChoice = Literal["auto", "monotonic_raw", "tsc", "cntvct"]


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Repeated measurements of one interval."""

    min_ns: MeanNs
    median_ns: MeanNs
    p99_ns: MeanNs
    p999_ns: MeanNs
    max_ns: MeanNs
    mean_ns: MeanNs
    count: Repeats


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
