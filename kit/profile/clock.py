"""What a profile says of its clock: the certificate, and the calibrations at both ends of a launch."""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.cell import Int64

ClockSource = Literal["monotonic_raw", "tsc", "cntvct"]
ClockChoice = Literal["auto", "monotonic_raw", "tsc", "cntvct"]


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Of repeated measurements of one interval, in nanoseconds."""

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
    """How good the clock is, measured here and now. Overhead is reported, never subtracted.

    Attributes:
        source: what a stamp reads.
        source_reason: why this source, and why not a finer one.
        resolution_ns: smallest positive change seen between reads.
        null_interval: two reads back to back, in C.
        path_cost: one stamp as the step loop makes it, through Python.
        drift_ppm: disagreement of calibrations at start and end; null for a source that needs none.
        shortest_step_ns: 1000 median null intervals; a shorter step may not be timed singly.
    """

    source: ClockSource
    source_reason: str
    resolution_ns: float
    null_interval: Distribution
    path_cost: Distribution
    calibration: Calibration | None
    drift_ppm: float | None
    shortest_step_ns: Int64
