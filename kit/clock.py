"""The only place that reads time in a measurement.

Stamps go around steps, `now_ns` around phases and sensor readings::

    phase   now_ns ├──────────────── steady ────────────────┤ now_ns
    steps         stamp ─ step ─ stamp ─ step ─ stamp ─ ...
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kit.errors import KitError
from kit.profile.clock import Calibration, Certificate, ClockChoice, ClockSource, Distribution

try:
    from kit._clock import ffi, lib
    from kit._stamp import StampBuffer
except ImportError as error:
    raise ImportError(f"kit's native clock is not built; run `make setup` or `pip install -e .` ({error})") from error


# The kernel watches its clocks and falls back from one that misbehaves: *current* is its verdict, available is not.
CURRENT_CLOCKSOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")

# A bracket is tens of nanoseconds wide: over 100 ms that is less than 1 ppm.
CALIBRATION_SPAN_NS = 100_000_000
# A bracket is widened by an interrupt now and then; of ten, one is as tight as the clock allows.
CALIBRATION_BRACKETS = 10

# A hundred samples lie above p99.9, and at tens of nanoseconds each they take milliseconds.
CERTIFICATE_SAMPLES = 100_000
# The interpreter specializes a loop within its first rounds; these are not what the step loop pays.
PATH_WARMUP = 1_000
# Of a step that lasts 1000 null intervals, 0.1 % is clock.
NULL_INTERVALS_PER_STEP = 1000

_NS_PER_S = 1_000_000_000
_NUMBERS: dict[str, int] = {
    "monotonic_raw": lib.KIT_MONOTONIC_RAW,
    "tsc": lib.KIT_TSC,
    "cntvct": lib.KIT_CNTVCT,
}


class ClockError(KitError):
    """A clock that was asked for cannot be trusted here, or stamps cannot be read as nanoseconds. One line."""


def now_ns() -> int:
    """CLOCK_MONOTONIC_RAW in nanoseconds: not slewed by NTP, comparable across processes of one host."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def why_untrusted(source: ClockSource, clocksource_file: Path = CURRENT_CLOCKSOURCE) -> str | None:
    """Why `source` may not be used for stamps here; None if it may."""
    if not lib.kit_clock_has_source(_NUMBERS[source]):
        return f"this processor has no {source}"
    if source == "tsc":
        return _cpuid_distrust() or _kernel_distrust("tsc", clocksource_file)
    if source == "cntvct":
        unset = "firmware has not set cntfrq_el0" if lib.kit_clock_nominal_hz() == 0 else None
        return unset or _kernel_distrust("arch_sys_counter", clocksource_file)
    return None


def _cpuid_distrust() -> str | None:
    if not lib.kit_clock_has_invariant_tsc():
        return "CPUID does not show an invariant TSC"
    if not lib.kit_clock_has_rdtscp():
        return "CPUID does not show RDTSCP"
    return None


def _kernel_distrust(expected: str, clocksource_file: Path) -> str | None:
    try:
        current = clocksource_file.read_text().strip()
    except OSError as error:
        return f"the kernel's current clocksource cannot be read ({error.strerror}: {clocksource_file})"
    return None if current == expected else f"the kernel's current clocksource is {current or 'empty'}, not {expected}"


def choose_source(
    preference: ClockChoice = "monotonic_raw", *, clocksource_file: Path = CURRENT_CLOCKSOURCE
) -> tuple[ClockSource, str]:
    """The source of stamps, and one line that says why this one and not a finer one.

    `auto` is the processor's counter where it is trusted, else monotonic_raw.

    Raises:
        ClockError: a counter was asked for by name and is not trusted.
    """
    if preference not in ("auto", *_NUMBERS):
        raise ClockError(f"unknown clock source {preference!r}: choose auto, {', '.join(_NUMBERS)}")
    counter: ClockSource = "cntvct" if lib.kit_clock_has_source(_NUMBERS["cntvct"]) else "tsc"
    wanted: ClockSource = counter if preference == "auto" else preference
    why_not = why_untrusted(wanted, clocksource_file)
    if why_not is None and wanted != "monotonic_raw":
        return wanted, f"reliable: {_grounds(wanted)}"
    if preference not in ("auto", "monotonic_raw"):
        raise ClockError(f"the clock {wanted} is not reliable here: {why_not}; use --clock monotonic_raw")
    why_not = why_untrusted(counter, clocksource_file)
    finer = f"{counter} is not reliable: {why_not}" if why_not else f"{counter} is reliable too: --clock {counter}"
    return "monotonic_raw", f"nanoseconds from the kernel; {finer}"


def _grounds(counter: ClockSource) -> str:
    if counter == "tsc":
        return "CPUID shows invariant TSC and RDTSCP, and the kernel's current clocksource is tsc"
    return f"the architecture's counter, {lib.kit_clock_nominal_hz()} Hz, is the kernel's current clocksource"


def calibrate(
    source: ClockSource = "monotonic_raw",
    *,
    span_ns: int = CALIBRATION_SPAN_NS,
    brackets: int = CALIBRATION_BRACKETS,
) -> Calibration | None:
    """Ticks of `source` against CLOCK_MONOTONIC_RAW; None for monotonic_raw, which needs none. Sleeps for `span_ns`."""
    if source == "monotonic_raw":
        return None
    measured = lib.kit_clock_calibrate(_NUMBERS[source], span_ns, brackets)
    return Calibration(
        ticks_per_s=measured.ticks * _NS_PER_S / measured.span_ns,
        span_ns=measured.span_ns,
        uncertainty_ppm=measured.uncertainty_ns / measured.span_ns * 1e6,
        brackets=brackets,
    )


class Stamps:
    """A preallocated buffer of stamps. In a loop, hoist the stamp first: `stamp = stamps.stamp`.

    Attributes:
        stamp: reads the clock once; keeps the GIL, makes no object; IndexError when `capacity` is used up.
        source: what a stamp reads.
        capacity: stamps there is room for: one more than the steps they delimit.
    """

    __slots__ = ("_buffer", "capacity", "source", "stamp")

    def __init__(self, capacity: int, source: ClockSource) -> None:
        self._buffer = StampBuffer(capacity, source)
        self.stamp: Callable[[], None] = self._buffer.stamp
        self.source: ClockSource = source
        self.capacity = capacity

    @property
    def count(self) -> int:
        """Stamps made so far."""
        return self._buffer.count

    def clear(self) -> None:
        """Forget the stamps. BufferError while a `view` is alive."""
        self._buffer.clear()

    def view(self) -> NDArray[np.int64]:
        """The stamps made so far, shape (count,), read-only, without copying: ns for monotonic_raw, else ticks."""
        return np.asarray(self._buffer)

    def intervals_ns(self, calibration: Calibration | None = None) -> NDArray[np.int64]:
        """Nanoseconds between one stamp and the next, shape (count - 1,); they add up to the whole.

        Raises:
            ClockError: the source counts ticks and `calibration` is None.
        """
        units = self.view()
        # Rounded as instants, not as intervals, so that rounding does not add up.
        instants_ns = np.rint((units - units[:1]) * _ns_per_unit(self.source, calibration))
        intervals_ns: NDArray[np.int64] = np.diff(instants_ns.astype(np.int64))
        return intervals_ns


def stamps(capacity: int, source: ClockSource = "monotonic_raw") -> Stamps:
    """A buffer for `capacity` stamps, its memory already touched.

    Raises:
        ValueError: capacity below 1, or a source that this processor lacks.
    """
    return Stamps(capacity, source)


def certify(
    source: ClockSource,
    start_calibration: Calibration | None = None,
    end_calibration: Calibration | None = None,
    *,
    samples: int = CERTIFICATE_SAMPLES,
    clocksource_file: Path = CURRENT_CLOCKSOURCE,
) -> Certificate:
    """Measure the clock here and now. A counter without `start_calibration` is calibrated first.

    Raises:
        ClockError: `source` is not trusted here.
    """
    _, reason = choose_source(source, clocksource_file=clocksource_file)
    calibration = start_calibration or calibrate(source)
    resolution_ns = lib.kit_clock_resolution(_NUMBERS[source], samples) * _ns_per_unit(source, calibration)
    null_interval = _distribution(_null_intervals_ns(source, calibration, samples))
    # A null interval shorter than the clock can show reads 0: then the resolution is the floor.
    floor_ns = max(null_interval.median_ns, resolution_ns)
    return Certificate(
        source=source,
        source_reason=reason,
        resolution_ns=resolution_ns,
        null_interval=null_interval,
        path_cost=_distribution(_path_costs_ns(source, calibration, samples)),
        calibration=calibration,
        drift_ppm=_drift_ppm(start_calibration, end_calibration),
        shortest_step_ns=round(NULL_INTERVALS_PER_STEP * floor_ns),
    )


def _null_intervals_ns(source: ClockSource, calibration: Calibration | None, count: int) -> NDArray[np.float64]:
    """From begin to end in C, with nothing between them."""
    intervals = np.zeros(count, np.int64)
    lib.kit_clock_null_intervals(_NUMBERS[source], ffi.from_buffer("int64_t[]", intervals, True), count)
    return intervals.astype(np.float64) * _ns_per_unit(source, calibration)


def _path_costs_ns(source: ClockSource, calibration: Calibration | None, count: int) -> NDArray[np.int64]:
    """From one stamp to the next, in a loop like the step loop with nothing in it."""
    path = stamps(max(count + 1, PATH_WARMUP), source)
    stamp = path.stamp
    for rounds in (PATH_WARMUP, count + 1):
        path.clear()
        for _ in range(rounds):
            stamp()
    return path.intervals_ns(calibration)


def _ns_per_unit(source: ClockSource, calibration: Calibration | None) -> float:
    if source == "monotonic_raw":
        return 1.0
    if calibration is None:
        raise ClockError(f"{source} counts ticks: nanoseconds need a calibration, calibrate({source!r})")
    return _NS_PER_S / calibration.ticks_per_s


def _drift_ppm(start: Calibration | None, end: Calibration | None) -> float | None:
    if start is None or end is None:
        return None
    return abs(end.ticks_per_s / start.ticks_per_s - 1) * 1e6


def _distribution(intervals_ns: NDArray[np.float64] | NDArray[np.int64]) -> Distribution:
    smallest, median, p99, p999, largest = np.percentile(intervals_ns, [0, 50, 99, 99.9, 100]).tolist()
    return Distribution(
        min_ns=smallest,
        median_ns=median,
        p99_ns=p99,
        p999_ns=p999,
        max_ns=largest,
        mean_ns=float(np.mean(intervals_ns)),
        count=len(intervals_ns),
    )
