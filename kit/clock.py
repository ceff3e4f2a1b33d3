"""The only file that reads time in a measurement.

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
from kit.profile.instruments import Calibration, Certificate, ClockChoice, ClockSource, Distribution

try:
    from kit._clock import ffi, lib
    from kit._stamp import StampBuffer
except ImportError as error:
    raise ImportError(f"kit's native clock is not built; run `make setup` or `pip install -e .` ({error})") from error


# The kernel watches its clocks and leaves one that misbehaves: the *current* clocksource has passed, an available one
# may not have.
CURRENT_CLOCKSOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
# The kernel's names of the processor's counters.
CLOCKSOURCES = {"tsc": "tsc", "cntvct": "arch_sys_counter"}

# A bracket is tens of nanoseconds wide: over 100 ms that is less than 1 ppm.
CALIBRATION_SPAN_NS = 100_000_000
# An interrupt widens a bracket now and then; one of ten is as tight as the clock allows.
CALIBRATION_BRACKETS = 10

# A hundred samples lie above p99.9, and at tens of nanoseconds each they take milliseconds.
CERTIFICATE_SAMPLES = 100_000
# The interpreter specializes a loop in its first rounds, whose cost the step loop does not pay.
PATH_WARMUP = 1_000
# In a step that lasts 1000 null intervals, the clock takes 0.1 %.
NULL_INTERVALS_PER_STEP = 1000

_NS_PER_S = 1_000_000_000
_NUMBERS: dict[str, int] = {"monotonic_raw": lib.KIT_MONOTONIC_RAW, "tsc": lib.KIT_TSC, "cntvct": lib.KIT_CNTVCT}


class ClockError(KitError):
    """A requested clock cannot be trusted here, or ticks cannot be read as nanoseconds. One line."""


def now_ns() -> int:
    """CLOCK_MONOTONIC_RAW in nanoseconds: not slewed by NTP, comparable across processes of one host."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def why_untrusted(source: ClockSource, clocksource_file: Path = CURRENT_CLOCKSOURCE) -> str | None:
    """Return why stamps must not use `source` here; None: they can."""
    lacks = {
        f"this processor has no {source}": not lib.kit_clock_has_source(_NUMBERS[source]),
        "CPUID does not show an invariant TSC": source == "tsc" and not lib.kit_clock_has_invariant_tsc(),
        "CPUID does not show RDTSCP": source == "tsc" and not lib.kit_clock_has_rdtscp(),
        "firmware has not set cntfrq_el0": source == "cntvct" and lib.kit_clock_nominal_hz() == 0,
    }
    why = next((why for why, is_lacking in lacks.items() if is_lacking), None)
    if why is not None or source == "monotonic_raw":
        return why
    try:
        current = clocksource_file.read_text().strip()
    except OSError as error:
        return f"the kernel's current clocksource cannot be read ({error.strerror}: {clocksource_file})"
    expected = CLOCKSOURCES[source]
    return None if current == expected else f"the kernel's current clocksource is {current or 'empty'}, not {expected}"


def choose_source(
    preference: ClockChoice = "monotonic_raw", *, clocksource_file: Path = CURRENT_CLOCKSOURCE
) -> tuple[ClockSource, str]:
    """Return the source of stamps, and one line that says why this source and not a finer one.

    `auto` is the processor's counter if it is trusted, else monotonic_raw.

    Raises:
        ClockError: `preference` is a counter that is not trusted, or no clock.
    """
    if preference not in ("auto", *_NUMBERS):
        raise ClockError(f"unknown clock source {preference!r}: choose auto, {', '.join(_NUMBERS)}")
    processors: ClockSource = "cntvct" if lib.kit_clock_has_source(_NUMBERS["cntvct"]) else "tsc"
    wanted: ClockSource = processors if preference == "auto" else preference
    counter = processors if wanted == "monotonic_raw" else wanted
    why_not = why_untrusted(counter, clocksource_file)
    if wanted == counter and why_not is None:
        grounds = "CPUID shows invariant TSC and RDTSCP, and the kernel's current clocksource is tsc"
        if counter == "cntvct":
            hz = lib.kit_clock_nominal_hz()
            grounds = f"the architecture's counter, {hz} Hz, is the kernel's current clocksource"
        return counter, f"reliable: {grounds}"
    if preference == counter:
        raise ClockError(f"the clock {counter} is not reliable here: {why_not}; use --clock monotonic_raw")
    finer = f"{counter} is not reliable: {why_not}" if why_not else f"{counter} is reliable too: --clock {counter}"
    return "monotonic_raw", f"nanoseconds from the kernel; {finer}"


def calibrate(
    source: ClockSource = "monotonic_raw", *, span_ns: int = CALIBRATION_SPAN_NS, brackets: int = CALIBRATION_BRACKETS
) -> Calibration | None:
    """Compare `source` with CLOCK_MONOTONIC_RAW for `span_ns`; None for monotonic_raw, which counts nanoseconds."""
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
    """A buffer for `capacity` stamps, its memory already touched. Hoist the stamp from a loop: `stamp = stamps.stamp`.

    Attributes:
        stamp: reads the clock once, and returns whether it is past the limit; keeps the GIL, makes no object;
            IndexError when the buffer is full.

    Raises:
        ValueError: capacity below 1, or a source that this processor lacks.
    """

    __slots__ = ("_buffer", "_source", "stamp")

    def __init__(self, capacity: int, source: ClockSource = "monotonic_raw") -> None:
        self._buffer, self._source = StampBuffer(capacity, source), source
        self.stamp: Callable[[], bool] = self._buffer.stamp

    @property
    def count(self) -> int:
        """How many stamps there are."""
        return self._buffer.count

    def limit(self, limit_ns: int, calibration: Calibration | None = None) -> None:
        """Let stamps be past the limit from so long after the last one on; 0: never.

        Raises:
            ClockError: the source counts ticks and `calibration` is None.
        """
        self._buffer.limit(round(limit_ns / _ns_per_unit(self._source, calibration)) if limit_ns else 0)

    def view(self) -> NDArray[np.int64]:
        """Return the stamps so far, shape (count,), read-only, without copying: ns for monotonic_raw, else ticks."""
        return np.asarray(self._buffer)

    def intervals_ns(self, calibration: Calibration | None = None) -> NDArray[np.int64]:
        """Return nanoseconds between one stamp and the next, shape (count - 1,); they add up to the whole.

        Raises:
            ClockError: the source counts ticks and `calibration` is None.
        """
        units = self.view()
        # Instants are rounded, not intervals, so that rounding does not add up.
        instants_ns = np.rint((units - units[:1]) * _ns_per_unit(self._source, calibration))
        intervals_ns: NDArray[np.int64] = np.diff(instants_ns.astype(np.int64))
        return intervals_ns


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
    ns_per_unit = _ns_per_unit(source, calibration)
    resolution_ns = lib.kit_clock_resolution(_NUMBERS[source], samples) * ns_per_unit
    # A null interval is from one read to the next in C, with nothing between them.
    null_intervals = np.zeros(samples, np.int64)
    lib.kit_clock_null_intervals(_NUMBERS[source], ffi.from_buffer("int64_t[]", null_intervals, True), samples)
    null_interval = _distribution(null_intervals.astype(np.float64) * ns_per_unit)
    # The path's cost is from one stamp to the next in a loop like the step loop, with nothing in it.
    path = Stamps(PATH_WARMUP + samples + 1, source)
    stamp = path.stamp
    for _ in range(PATH_WARMUP + samples + 1):
        stamp()
    drift_ppm = None
    if start_calibration and end_calibration:
        drift_ppm = abs(end_calibration.ticks_per_s / start_calibration.ticks_per_s - 1) * 1e6
    return Certificate(
        source=source,
        source_reason=reason,
        resolution_ns=resolution_ns,
        null_interval=null_interval,
        path_cost=_distribution(path.intervals_ns(calibration)[PATH_WARMUP:]),
        calibration=calibration,
        drift_ppm=drift_ppm,
        # A null interval shorter than the clock can show reads 0: then the resolution is the floor.
        shortest_step_ns=round(NULL_INTERVALS_PER_STEP * max(null_interval.median_ns, resolution_ns)),
    )


def _ns_per_unit(source: ClockSource, calibration: Calibration | None) -> float:
    if source == "monotonic_raw":
        return 1.0
    if calibration is None:
        raise ClockError(f"{source} counts ticks: nanoseconds need a calibration, calibrate({source!r})")
    return _NS_PER_S / calibration.ticks_per_s


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
