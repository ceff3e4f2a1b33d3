"""Clock frequency of the CPUs, where it is measured and not merely named."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean

from kit.profile.sensor import SensorReport
from kit.sensors import names
from kit.sensors.protocol import Sensor
from kit.sensors.source import Readable, Unavailable

CPU_ROOT = Path("/sys/devices/system/cpu")
CPUINFO = Path("/proc/cpuinfo")
SCOPE = "mean over all CPUs of the machine"
NO_FREQUENCY = (
    "no cpufreq driver here and no aperfmperf counter (usual in a virtual machine): "
    "the 'cpu MHz' of /proc/cpuinfo is then the nominal rate, not a measurement; measure on the host instead"
)


def scaling_mhz(root: Path = CPU_ROOT) -> float | None:
    """Mean of `scaling_cur_freq` over the CPUs, in MHz; None where no CPU has it."""
    khz = []
    for file in root.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        try:
            khz.append(int(file.read_text()))
        except (OSError, ValueError):  # an offline CPU answers EBUSY or <unknown>
            continue
    return fmean(khz) / 1000 if khz else None


def cpuinfo_mhz(cpuinfo: Path = CPUINFO) -> float | None:
    """Mean 'cpu MHz' of /proc/cpuinfo; None unless the CPU has the counters that make it a measurement."""
    try:
        text = cpuinfo.read_text()
    except OSError:
        return None
    if "aperfmperf" not in text:
        return None
    mhz = [float(value) for value in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", text, re.MULTILINE)]
    return fmean(mhz) if mhz else None


def open_all(root: Path = CPU_ROOT, cpuinfo: Path = CPUINFO) -> list[Sensor]:
    """The one sensor of CPU frequency: cpufreq, else /proc/cpuinfo where APERF/MPERF stand behind it."""
    if scaling_mhz(root) is not None:
        return [Readable(_report(f"{root}/cpu*/cpufreq/scaling_cur_freq"), lambda: scaling_mhz(root))]
    if cpuinfo_mhz(cpuinfo) is not None:
        return [Readable(_report(f"{cpuinfo} (aperfmperf)"), lambda: cpuinfo_mhz(cpuinfo))]
    return [Unavailable(names.FREQUENCY, "frequency", "MHz", SCOPE, str(root), reason=NO_FREQUENCY)]


def _report(source: str) -> SensorReport:
    return SensorReport(
        name=names.FREQUENCY, quantity="frequency", unit="MHz", scope=SCOPE, source=source, status="measured"
    )
