"""How the machine is at this moment: what explains a number that moved. Counters are cumulative."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import psutil

from kit.fingerprint.accelerator_state import accelerator_states
from kit.profile.identity import State
from kit.sensors import cgroup, frequency

Value = TypeVar("Value")

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# Where the kernel's drivers put the temperature of the processor, best first (psutil's names).
CPU_THERMOMETERS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")


class AbsentError(Exception):
    """A quantity that this machine does not show; the message says why."""


def state(root: Path = Path("/")) -> State:
    """Look at the machine now.

    Args:
        root: where /proc and /sys are looked for.
    """
    reasons: dict[str, str] = {}

    def ask(field: str, answer: Callable[[Path], Value]) -> Value | None:
        try:
            return answer(root)
        except AbsentError as error:
            reasons[field] = str(error)
        except (OSError, ValueError, IndexError) as error:
            reasons[field] = f"not readable: {error}"
        return None

    throttled = ask("cgroup_throttled", _throttled)
    if throttled is None:
        reasons["cgroup_throttled_ns"] = reasons["cgroup_throttled"]
    return State(
        taken=datetime.now(UTC).isoformat(timespec="milliseconds"),
        load_1min=ask("load_1min", _load_1min),
        governor=ask("governor", _governor),
        turbo=ask("turbo", _turbo),
        frequency_mhz=ask("frequency_mhz", _frequency_mhz),
        temperature_c=ask("temperature_c", _temperature_c),
        memory_available_b=ask("memory_available_b", _memory_available_b),
        context_switches=ask("context_switches", _context_switches),
        steal_ns=ask("steal_ns", _steal_ns),
        cgroup_throttled=None if throttled is None else throttled.stopped,
        cgroup_throttled_ns=None if throttled is None else throttled.stopped_ns,
        pressure_cpu_some_ns=ask("pressure_cpu_some_ns", _pressure_cpu_some_ns),
        accelerators=accelerator_states(),
        reasons=reasons,
    )


def _load_1min(root: Path) -> float:
    return float((root / "proc/loadavg").read_text().split()[0])


def _governor(root: Path) -> str:
    files = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    if not files:
        raise AbsentError("no cpufreq driver here (usual in a virtual machine): the host sets the governor")
    return " / ".join(sorted({file.read_text().strip() for file in files}))


def _turbo(root: Path) -> bool:
    cpu = root / "sys/devices/system/cpu"
    if (cpu / "intel_pstate/no_turbo").exists():
        return (cpu / "intel_pstate/no_turbo").read_text().strip() == "0"
    if (cpu / "cpufreq/boost").exists():
        return (cpu / "cpufreq/boost").read_text().strip() == "1"
    raise AbsentError("neither intel_pstate/no_turbo nor cpufreq/boost is there (usual in a virtual machine)")


def _frequency_mhz(root: Path) -> float:
    mhz = frequency.scaling_mhz(root / "sys/devices/system/cpu") or frequency.cpuinfo_mhz(root / "proc/cpuinfo")
    if mhz is None:
        raise AbsentError(frequency.NO_FREQUENCY)
    return mhz


def _temperature_c(_: Path) -> float:
    found = psutil.sensors_temperatures()
    for name in CPU_THERMOMETERS:
        if found.get(name):
            return float(max(entry.current for entry in found[name]))
    raise AbsentError("the kernel shows no CPU thermometer (usual in a virtual machine)")


def _memory_available_b(root: Path) -> int:
    return int(_word(root / "proc/meminfo", r"MemAvailable:\s+(\d+) kB")) * 1024


def _context_switches(root: Path) -> int:
    return int(_word(root / "proc/stat", r"ctxt (\d+)"))


def _steal_ns(root: Path) -> int:
    return int(_word(root / "proc/stat", r"cpu +(?:\d+ ){7}(\d+)")) * _TICK_NS


def _throttled(root: Path) -> cgroup.Throttling:
    group = cgroup.locate("cpu", "self", root / "sys/fs/cgroup", root / "proc")
    if group is None:
        raise AbsentError(f"no cpu controller is mounted under {root / 'sys/fs/cgroup'}")
    file = cgroup.governing_folder(group) / "cpu.stat"
    found = cgroup.throttling(file.read_bytes())
    if found is None:
        raise AbsentError(f"{file} counts no throttling: no CPU quota can apply to this group")
    return found


def _pressure_cpu_some_ns(root: Path) -> int:
    """Time in which some task waited for a CPU, since boot; the kernel counts microseconds."""
    file = root / "proc/pressure/cpu"
    if not file.exists():
        raise AbsentError("the kernel keeps no pressure figures (before 4.20, or booted without psi=1)")
    return int(_word(file, r"some .*total=(\d+)")) * 1000


def _word(file: Path, pattern: str) -> str:
    found = re.search(f"^{pattern}", file.read_text(), re.MULTILINE)
    if found is None:
        raise AbsentError(f"{file} does not show it")
    return found.group(1)
