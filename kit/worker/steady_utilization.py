"""CPU, memory, frequency and throttling over the steady phase, from the sampler's cumulative counters.

         begin                                end
──tick────┼──tick────tick────tick────tick──────┼──tick──
             first ────────────────── last            rate = (last - first) / time between them
"""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

from kit.profile.launch import Utilization
from kit.sensors import names
from kit.sensors.protocol import Reading
from kit.worker.samples import Samples
from kit.worker.steady_gpu_throttling import gpu_throttled_by

# CPU time of an ended child moves to its parent rounded to 10 ms ticks. A larger fall means that a process left the
# tree uncounted (its parent ignores SIGCHLD, or ended before it), and the total says nothing any more.
FALL_ALLOWED_S = 0.05

FIELD_SENSORS = {
    "process_cpu_pct": names.PROCESS_TIME,
    "machine_cpu_pct": names.MACHINE_TIME,
    "rss_peak_b": names.RESIDENT_MEMORY,
    "frequency_mhz": names.FREQUENCY,
    "throttled_ns": names.THROTTLED_TIME,
}


def utilization(samples: Samples, begin_ns: int, end_ns: int) -> Utilization:
    """Summarize the samples that lie between `begin_ns` and `end_ns`; a field that cannot be had is null, with why."""
    gap = samples.gap(begin_ns, end_ns)
    ticks = samples.within(begin_ns, end_ns)
    if gap is not None:
        return Utilization(
            process_cpu_pct=None,
            machine_cpu_pct=None,
            rss_peak_b=None,
            frequency_mhz=None,
            throttled_ns=None,
            samples=len(ticks),
            sampler_cpu_pct=None,
            reasons=dict.fromkeys([*FIELD_SENSORS, "gpu_throttled_by", "sampler_cpu_pct"], gap),
        )
    reasons: dict[str, str] = {}
    inside = {field: _inside(samples, field, begin_ns, end_ns, reasons) for field in FIELD_SENSORS}
    throttled = _rise(inside["throttled_ns"], "throttled_ns", 0.0, reasons)
    gpu_throttled, gpu_unknown = gpu_throttled_by(samples, begin_ns, end_ns)
    if gpu_unknown is not None:
        reasons["gpu_throttled_by"] = gpu_unknown
    resident = inside["rss_peak_b"]
    frequency = inside["frequency_mhz"]
    spent_ns = ticks[-1].sampler_cpu_ns - ticks[0].sampler_cpu_ns
    return Utilization(
        process_cpu_pct=_cpu_pct(inside["process_cpu_pct"], "process_cpu_pct", reasons),
        machine_cpu_pct=_cpu_pct(inside["machine_cpu_pct"], "machine_cpu_pct", reasons),
        rss_peak_b=int(max(value for _, value in resident)) if resident else None,
        frequency_mhz=fmean(value for _, value in frequency) if frequency else None,
        throttled_ns=None if throttled is None else int(throttled),
        gpu_throttled_by=gpu_throttled,
        samples=len(ticks),
        missed_samples=samples.missed(begin_ns, end_ns),
        sampler_cpu_pct=100 * spent_ns / (ticks[-1].at_ns - ticks[0].at_ns),
        reasons=reasons,
    )


def _inside(
    samples: Samples, field: str, begin_ns: int, end_ns: int, reasons: dict[str, str]
) -> list[tuple[int, float]]:
    """Readings within the window; with none, the reason is noted."""
    name = FIELD_SENSORS[field]
    report = samples.report(name)
    found = [_known(reading) for reading in samples.series(name) if begin_ns <= reading.at_ns <= end_ns]
    if report is None:
        reasons[field] = f"the sampler has no sensor {name}"
    elif report.status == "unavailable":
        reasons[field] = report.reason or f"{name} is unavailable"
    elif not found:
        reasons[field] = f"no reading of {name} lies in the steady phase, or every one failed"
    return found


def _known(reading: Reading) -> tuple[int, float]:
    assert reading.value is not None  # a series holds successful readings
    return reading.at_ns, reading.value


def _rise(readings: list[tuple[int, float]], field: str, fall_allowed: float, reasons: dict[str, str]) -> float | None:
    """By how much a counter rose from the first reading to the last."""
    if not readings:
        return None
    if len(readings) == 1:
        reasons[field] = "one reading lies in the steady phase, a rate needs two"
        return None
    fall = max(earlier[1] - later[1] for earlier, later in pairwise(readings))
    if fall > fall_allowed:
        reasons[field] = f"its counter fell by {fall:.3g}: what it counted is not known"
        return None
    return max(0.0, readings[-1][1] - readings[0][1])


def _cpu_pct(readings: list[tuple[int, float]], field: str, reasons: dict[str, str]) -> float | None:
    """Percent of one CPU."""
    seconds = _rise(readings, field, FALL_ALLOWED_S, reasons)
    return None if seconds is None else 100e9 * seconds / (readings[-1][0] - readings[0][0])
