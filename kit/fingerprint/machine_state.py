"""The state of the machine at this moment, which can explain a number that moved. Counters are cumulative."""

from __future__ import annotations

import ctypes
import os
import re
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import psutil

from kit.devices import DEVICES
from kit.profile.facts import FactValue, State, Values, device_facts
from kit.profile.fields import Reason, reason
from kit.sensors import cgroup, linux
from kit.sensors.sources import now_ns

# <sys/timex.h>: TIME_ERROR, and more bytes than its structure has.
TIME_ERROR, TIMEX_B = 5, 512
# The clocks are read so often that at least one reading is not interrupted, and is about 100 ns wide.
ANCHORS = 10
# psutil's names of the drivers that show the processor's temperature, best first.
CPU_THERMOMETERS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")


def governors(cpu: Path) -> list[str]:
    """Return the governors of the CPUs, each once; none if cpufreq is not shown. `cpu`: the CPUs' folder in sysfs."""
    return sorted({file.read_text().strip() for file in cpu.glob("cpu[0-9]*/cpufreq/scaling_governor")})


def turbo_switch(cpu: Path) -> tuple[Path, bool] | None:
    """Return the file that switches turbo, and whether it is on; None where there is none."""
    for file, on in ((cpu / "intel_pstate/no_turbo", "0"), (cpu / "cpufreq/boost", "1")):
        if file.exists():
            return file, file.read_text().strip() == on
    return None


def state(root: Path = Path("/")) -> State:
    """Return the machine's state now; `root`: where /proc and /sys are."""
    cpu, proc = root / "sys/devices/system/cpu", root / "proc"
    heat, no_heat = "cpu[0-9]*/thermal_throttle/{}_throttle_count", reason("no_throttle_count")
    nodes = cpu.parent / "node"
    questions: dict[str, Callable[[], FactValue | Reason]] = {
        "load_1min": lambda: float((proc / "loadavg").read_text().split()[0]),
        "cpu.governor": lambda: " / ".join(governors(cpu)) or reason("no_governor"),
        "cpu.turbo": lambda: (turbo_switch(cpu) or (None, reason("no_turbo_switch")))[1],
        "cpu.frequency_mhz": lambda: next(
            filter(None, (gauge.read(root) for gauge in linux.FREQUENCY)), reason("no_frequency")
        ),
        "cpu.temperature_c": _temperature_c,
        "memory_available_b": lambda: _sum([proc / "meminfo"], r"MemAvailable:\s+(\d+) kB", unit=1024),
        "context_switches": lambda: _sum([proc / "stat"], r"ctxt (\d+)"),
        "steal_ns": lambda: _sum([proc / "stat"], r"cpu +(?:\d+ ){7}(\d+)", unit=linux.TICK_NS),
        "cgroup_throttled": lambda: _throttled(root, 1),
        "cgroup_throttled_ns": lambda: _throttled(root, 0),
        "pressure_cpu_some_ns": lambda: linux.pressure_ns((proc / "pressure/cpu").read_bytes())[0],
        "clock_synchronized": _clock_synchronized,
        # How often heat throttled cores; each CPU shows the count of its package, too.
        "core_throttled": lambda: _sum(cpu.glob(heat.format("core")), r"(\d+)", no_heat),
        "package_throttled": lambda: _sum(cpu.glob(heat.format("package")), r"(\d+)", no_heat),
        "numa_misses": lambda: _sum(
            nodes.glob("node[0-9]*/numastat"), r"numa_miss (\d+)", reason("not_shown", source=str(nodes))
        ),
    }
    facts: Values = {}
    reasons: dict[str, Reason] = {}
    for name, answer in questions.items():
        try:
            value = answer()
        except OSError as error:
            value = reason("file_not_readable", file=str(error.filename), error=str(error.strerror))
        except (ValueError, IndexError) as error:
            value = reason("state_not_as_expected", error=str(error))
        facts[name] = None if isinstance(value, Reason) else value
        if isinstance(value, Reason):
            reasons[name] = value
    anchors = [(now_ns(), time.time_ns(), now_ns()) for _ in range(ANCHORS)]
    before_ns, utc_ns, after_ns = min(anchors, key=lambda anchor: anchor[2] - anchor[0])
    return State(
        taken=datetime.fromtimestamp(utc_ns / 1e9, UTC).isoformat(timespec="microseconds"),
        raw_ns=(before_ns + after_ns) // 2,
        raw_width_ns=after_ns - before_ns,
        facts=facts | device_facts([state for device in DEVICES.values() for state in device.states()]),
        reasons=reasons,
    )


def _temperature_c() -> float | Reason:
    thermometers = psutil.sensors_temperatures()
    entries = next((thermometers[name] for name in CPU_THERMOMETERS if thermometers.get(name)), None)
    return float(max(entry.current for entry in entries)) if entries else reason("no_thermometer")


def _clock_synchronized() -> bool:
    """Ask adjtimex(2), which changes nothing if its modes are 0; TIME_ERROR means that nobody sets the clock."""
    library = ctypes.CDLL(None, use_errno=True)
    answer = library.adjtimex(ctypes.create_string_buffer(TIMEX_B))
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "adjtimex")
    return bool(answer != TIME_ERROR)


def _sum(files: Iterable[Path], pattern: str, none: Reason | None = None, unit: int = 1) -> int | Reason:
    """Return the sum over files of the pattern's first match at the beginning of a line; `none` if there is no file."""
    numbers = [int(re.findall(f"^{pattern}", file.read_text(), re.MULTILINE)[0]) * unit for file in files]
    return none if none is not None and not numbers else sum(numbers)


def _throttled(root: Path, index: int) -> int | Reason:
    """Return how long (0) or how often (1) the control group was throttled."""
    file = cgroup.throttling_file(root)
    return file if isinstance(file, Reason) else cgroup.throttling(file.read_bytes())[index]
