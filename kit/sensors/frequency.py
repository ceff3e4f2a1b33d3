"""Clock frequency of the CPUs, where it is measured and not merely named."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from statistics import fmean

from kit.profile.reason import reason
from kit.profile.sensor import SensorReport
from kit.sensors.protocol import Sensor

CPU_ROOT = Path("/sys/devices/system/cpu")
CPUINFO = Path("/proc/cpuinfo")


def scaling_mhz(root: Path = CPU_ROOT) -> float | None:
    """Return the mean of `scaling_cur_freq` over the CPUs, in MHz; None where no CPU has it."""
    khz = []
    for file in root.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        with suppress(OSError, ValueError):  # an offline CPU answers EBUSY or <unknown>
            khz.append(int(file.read_text()))
    return fmean(khz) / 1000 if khz else None


def cpuinfo_mhz(cpuinfo: Path = CPUINFO) -> float | None:
    """Return the mean "cpu MHz" of /proc/cpuinfo; None unless the CPU has the counters that make it a measurement.

    Raises:
        OSError: there is no such file.
    """
    text = cpuinfo.read_text()
    mhz = [float(value) for value in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", text, re.MULTILINE)]
    return fmean(mhz) if mhz and "aperfmperf" in text else None


def open_sampled(root: Path = CPU_ROOT, cpuinfo: Path = CPUINFO) -> list[Sensor]:
    """Open the one sensor of CPU frequency: cpufreq, else /proc/cpuinfo where APERF/MPERF stand behind it."""
    from_cpuinfo = scaling_mhz(root) is None
    report = SensorReport(
        name="cpu.frequency",
        quantity="frequency",
        unit="MHz",
        scope="mean over all CPUs of the machine",
        source=f"{cpuinfo} (aperfmperf)" if from_cpuinfo else f"{root}/cpu*/cpufreq/scaling_cur_freq",
        status="measured",
    )
    if from_cpuinfo and cpuinfo_mhz(cpuinfo) is None:
        return [Sensor(report, reason("no_frequency"))]
    return [Sensor(report, lambda: cpuinfo_mhz(cpuinfo) if from_cpuinfo else scaling_mhz(root))]
