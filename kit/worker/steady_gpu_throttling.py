"""Why a GPU was slower than asked for in the steady phase, from the samples of its clocks event reasons.

A sample is the present moment: what lasts less than the sampler's period may fall between two of them.
"""

from __future__ import annotations

from kit.profile.sensor import SensorReport
from kit.sensors import clock_events
from kit.worker.samples import Samples

NO_GPU = "no GPU sensor answers"


def gpu_throttled_by(samples: Samples, begin_ns: int, end_ns: int) -> tuple[list[str] | None, str | None]:
    """Reasons that any sample of the window has, on any GPU of the machine, and why nothing can be said.

    Returns:
        ``["software power cap of GPU 0"]``, sorted; empty when every GPU was looked at and none was slowed. Null,
        with the reason, when none is known to have been slowed and not all of them answered.
    """
    found: set[str] = set()
    unknown = []
    boards = [report for report in samples.reports if report.name.endswith(f".{clock_events.SUFFIX}")]
    for report in boards:
        mask = _seen(samples, report.name, begin_ns, end_ns)
        if mask is None:
            unknown.append(_why_unknown(report))
        else:
            found.update(f"{words} of GPU {_number(report)}" for words in clock_events.slowing_reasons(mask))
    if not boards:
        return None, NO_GPU
    if unknown and not found:
        return None, unknown[0]
    return sorted(found), None


def _seen(samples: Samples, name: str, begin_ns: int, end_ns: int) -> int | None:
    """All bits that a board set within the window; None when it never answered there."""
    mask = None
    for reading in samples.series(name):
        if begin_ns <= reading.at_ns <= end_ns and reading.value is not None:
            mask = (mask or 0) | int(reading.value)
    return mask


def _why_unknown(report: SensorReport) -> str:
    if report.status == "unavailable":
        return report.reason or f"{report.name} is unavailable"
    return f"no reading of {report.name} lies in the steady phase, or every one failed"


def _number(report: SensorReport) -> str:
    """``0`` of ``nvml.0.clock_events``."""
    return report.name.split(".")[1]
