"""What a profile says of its clock: the certificate, and the calibrations at both ends of a launch."""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.cell import Int64

ClockSource = Literal["monotonic_raw", "tsc", "cntvct"]
ClockChoice = Literal["auto", "monotonic_raw", "tsc", "cntvct"]


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Repeated measurements of one interval."""

    min_ns: float
    median_ns: float
    p99_ns: float
    p999_ns: float
    max_ns: float
    mean_ns: float
    count: Int64


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Counter ticks against CLOCK_MONOTONIC_RAW: tightest of `brackets` two-sided reads `span_ns` apart."""

    ticks_per_s: float
    span_ns: Int64
    uncertainty_ppm: float  # bracket widths over the span
    brackets: Int64


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """How good the clock is, measured here and now. Overhead is reported, never subtracted."""

    source: ClockSource  # what a stamp reads
    source_reason: str  # why this source, and why not a finer one
    resolution_ns: float  # smallest positive change seen between reads
    null_interval: Distribution  # two reads back to back, in C
    path_cost: Distribution  # one stamp as the step loop makes it, through Python
    calibration: Calibration | None
    drift_ppm: float | None  # disagreement of calibrations at start and end; null for a source that needs none
    shortest_step_ns: Int64  # 1000 median null intervals; a shorter step may not be timed singly
