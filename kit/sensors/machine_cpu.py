"""Busy CPU time of the whole machine, as a counter. (`psutil.cpu_percent` answers 0.0 when first asked.)"""

from __future__ import annotations

import os
from pathlib import Path

from kit.profile.sensor import SensorReport
from kit.sensors import names
from kit.sensors.held_file import HeldFile
from kit.sensors.protocol import Sensor
from kit.sensors.source import Readable, Unavailable

PROC_STAT = Path("/proc/stat")
SCOPE = "machine, all processes"
SOURCE = "/proc/stat: user + nice + system + irq + softirq; cumulative"

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# The first line holds the sums over all CPUs: at most ten numbers of twenty digits.
_FIRST_LINE_B = 256


def busy_s(stat: bytes) -> float:
    """CPU seconds that all CPUs spent working since boot; idle, iowait and steal left out.

    proc_stat(5): cpu user nice system idle iowait irq softirq steal guest guest_nice; user and nice hold the guests'.
    """
    user, nice, system, _, _, irq, softirq = (int(field) for field in stat.split(maxsplit=8)[1:8])
    return (user + nice + system + irq + softirq) / _TICKS_PER_S


def open_all(file: Path = PROC_STAT) -> list[Sensor]:
    """The one sensor of the machine's CPU time."""
    try:
        held = HeldFile(file, _FIRST_LINE_B)
    except OSError as error:
        reason = f"{file} is not readable: {error.strerror}"
        return [Unavailable(names.MACHINE_TIME, "utilization", "s", SCOPE, SOURCE, reason=reason)]
    report = SensorReport(
        name=names.MACHINE_TIME,
        quantity="utilization",
        unit="s",
        scope=SCOPE,
        source=SOURCE,
        status="measured",
        update_period_ns=1_000_000_000 // _TICKS_PER_S,
    )
    return [Readable(report, lambda: busy_s(held.read()), (OSError, ValueError), held.close)]
