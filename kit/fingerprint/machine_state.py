"""The state of the machine at this moment: it can explain a number that moved, or disturb the numbers to come.

state       what the kernel and the devices show, before and after a run; counters are cumulative
others now  how much of some CPUs other programs use, and which: a run and `kit doctor` show it
"""

from __future__ import annotations

import ctypes
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psutil

from kit.devices import DEVICES
from kit.printable import printable_line
from kit.profile.facts import FactValue, State, Values, device_facts
from kit.profile.fields import Reason, reason
from kit.sensors import cgroup, linux
from kit.sensors.sources import FAILURES, now_ns

# <sys/timex.h>: TIME_ERROR, and more bytes than its structure has.
TIME_ERROR, TIMEX_B = 5, 512
# The clocks are read so often that at least one reading is not interrupted, and is about 100 ns wide.
ANCHORS = 10
# psutil's names of the drivers that show the processor's temperature, best first.
CPU_THERMOMETERS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")
# This is thirty ticks of the kernel on each CPU; one tick is 3 % of one CPU.
LOOK_S = 0.3
# A program that uses less than this fraction of a CPU is not worth a name.
NAMED_LEAST = 0.05
NAMED_MAX = 3
# The names of these programs say nothing, so the name of the script is shown, too.
INTERPRETERS = re.compile(r"(python|perl|ruby|node|java|bash|sh$|R$|julia)")


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
    """Return the machine's state now; `root`: where /proc and /sys are, for what psutil does not read."""
    cpu, proc = root / "sys/devices/system/cpu", root / "proc"
    heat, no_heat = "cpu[0-9]*/thermal_throttle/{}_throttle_count", reason("no_throttle_count")
    nodes = cpu.parent / "node"
    questions: dict[str, Callable[[], FactValue | Reason]] = {
        "load_1min": lambda: psutil.getloadavg()[0],
        "cpu.governor": lambda: " / ".join(governors(cpu)) or reason("no_governor"),
        "cpu.turbo": lambda: (turbo_switch(cpu) or (None, reason("no_turbo_switch")))[1],
        "cpu.frequency_mhz": lambda: linux.frequency_mhz() or reason("no_frequency"),
        "cpu.temperature_c": _temperature_c,
        "memory_available_b": lambda: psutil.virtual_memory().available,
        "context_switches": lambda: psutil.cpu_stats().ctx_switches,
        "steal_ns": lambda: round(psutil.cpu_times().steal * 1e9),
        "cgroup_throttled": lambda: _throttled(root, 1),
        "cgroup_throttled_ns": lambda: _throttled(root, 0),
        "pressure_cpu_some_ns": lambda: linux.pressure_ns((proc / "pressure/cpu").read_bytes())[0],
        "clock_synchronized": _clock_synchronized,
        "utc_offset_s": lambda: time.localtime().tm_gmtoff,
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


def _sum(files: Iterable[Path], pattern: str, none: Reason) -> int | Reason:
    """Return the sum over files of the pattern's first match at the beginning of a line; `none` if there is no file."""
    numbers = [int(re.findall(f"^{pattern}", file.read_text(), re.MULTILINE)[0]) for file in files]
    return sum(numbers) if numbers else none


def _throttled(root: Path, index: int) -> int | Reason:
    """Return how long (0) or how often (1) the control group was throttled."""
    file = cgroup.throttling_file(root)
    return file if isinstance(file, Reason) else cgroup.throttling(file.read_bytes())[index]


class OthersNow(NamedTuple):
    """What other programs used for a moment."""

    fraction: float | None  # of the CPUs' time; null: the kernel does not show it here
    busiest: list[str]  # name and process id, the busiest first; empty if no other process can be seen
    most: float  # fraction of the CPUs' time that others may take in a clean block

    @property
    def is_quiet(self) -> bool:
        """Whether a block that is measured now would count as clean."""
        return self.fraction is None or self.fraction <= self.most

    @property
    def reason(self) -> Reason:
        """The finding as a code with values."""
        if self.fraction is None:
            return reason("others_unknown")
        code = "others_quiet" if self.is_quiet else "others_now" if self.busiest else "others_unseen"
        return reason(code, others_pct=100 * self.fraction, who=", ".join(self.busiest))


def others_now(cpus: Sequence[int], most: float, look_s: float = LOOK_S, root: Path = Path("/")) -> OthersNow:
    """Watch how much others use of these CPUs.

    Args:
        cpus: at least one.
        most: fraction of their time that others may take.
        look_s: seconds to watch for.
        root: where /proc is.
    """
    # psutil's list does not say of which CPU each entry is: where one is offline, the later ones move up.
    times, stat = linux.times_parser(cpus), root / "proc/stat"
    try:
        times(stat.read_bytes())
        processes_before = _cpu_s_of_processes(cpus)
        begin_ns, before, own_before_ns = now_ns(), times(stat.read_bytes()), time.process_time_ns()
        time.sleep(look_s)
        span_ns, after = now_ns() - begin_ns, times(stat.read_bytes())
    except FAILURES:  # the kernel does not show it here, or a CPU went offline
        return OthersNow(None, [], most)
    used_s = {
        f"{name} {pid}": later_s - processes_before.get((pid, name), later_s)
        for (pid, name), later_s in _cpu_s_of_processes(cpus).items()
    }
    busiest = [name for name in sorted(used_s, key=lambda name: -used_s[name]) if used_s[name] >= NAMED_LEAST * look_s]
    taken_ns = sum(after) - sum(before) - (time.process_time_ns() - own_before_ns)
    return OthersNow(min(1.0, max(0.0, taken_ns / (span_ns * len(cpus)))), busiest[:NAMED_MAX], most)


def _cpu_s_of_processes(cpus: Collection[int]) -> dict[tuple[int, str], float]:
    """Return the CPU time of each other process that can be seen and last ran on one of `cpus`, by its id and name.

    An interpreter's name is followed by the script or module that it runs.
    """
    used_s = {}
    for process in psutil.process_iter(["name", "cmdline", "cpu_times", "cpu_num"]):
        times, name = process.info["cpu_times"], process.info["name"] or "?"
        if process.pid == os.getpid() or times is None or process.info["cpu_num"] not in cpus:
            continue
        words = (process.info["cmdline"] or [])[1:]
        script = "" if "-c" in words else next((word for word in words if not word.startswith("-")), "")
        if INTERPRETERS.match(name) and script:
            name = f"{name} {Path(script).name}"
        used_s[process.pid, printable_line(name)] = times.user + times.system
    return used_s
