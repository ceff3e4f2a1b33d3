"""Linux's own counters of this process and of the machine, the frequency of its CPUs, and gauges that are files.

open_edges     a table of counters, which a worker reads at both edges of each block
open_sampled   the frequency by psutil, and GAUGES, a table of files with one number: the sampler reads them

Counters at edges are read without psutil. One edge takes 24 µs so, 0.02 % of two edges of a block. The same by psutil,
as far as it has them, takes 110 µs and, with the CPU times of children, for which it lists all processes, 6 to 11 ms:
5 to 9 % of a block, on the CPUs that the next member of the cycle computes on. psutil has no page faults, no pressure,
no throttling, and CPU times of a process to 10 ms only. (tests/bench/bench_psutil.py, two vCPUs)
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import psutil
from msgspec.structs import replace

from kit.profile.fields import Reason, reason
from kit.profile.instruments import SensorReport
from kit.sensors import cgroup
from kit.sensors.sources import FAILURES, EdgeSource, Sensor, counters_in, measured

ROOT = Path("/")
CPU_ROOT = ROOT / "sys/devices/system/cpu"
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
PAGE_B = os.sysconf("SC_PAGE_SIZE")
# A line of /proc/stat is a name and ten numbers of at most twenty digits.
STAT_LINE_B = 240
# The threads of XLA's pool on a CPU, whose names the kernel cuts to 15 characters.
XLA_POOL = "tf_XLAEigen"
# /proc/vmstat is about two hundred lines of a name and a number.
VMSTAT_B = 16384
QUANTITIES = {"J": "energy", "W": "power", "MHz": "frequency", "C": "temperature", "%": "utilization", "B": "memory"}


class Gauge(NamedTuple):
    """A sensor that is a file which begins with a number, or the mean over several such files."""

    name: str
    unit: str  # one of QUANTITIES; joules are a counter
    files: str  # a pattern below the root
    scope: str  # what is included
    per_unit: float = 1  # the number that a file shows for one unit
    parse: Callable[[str], float] = lambda text: float(text.split()[0])
    update_period_ns: int | None = None
    mean_over_ns: int | None = None  # the file shows a mean over this time

    def read(self, root: Path = ROOT) -> float | None:
        """Return the mean over the files that have a number, as an offline CPU's has not; None if no file has one."""
        numbers = []
        for file in root.glob(self.files):
            try:
                numbers.append(self.parse(file.read_text()))
            except FAILURES:
                continue
        return fmean(numbers) / self.per_unit if numbers else None


def frequency_mhz() -> float | None:
    """Return the mean frequency of the CPUs that are online; None: the kernel shows none, or a nominal one alone.

    psutil's own mean counts a CPU that is offline as one of 0 MHz, and does not tell a nominal frequency from a
    measured one: that is known from cpufreq, which has limits, and from APERF and MPERF, which count cycles.
    """
    try:
        known = [cpu for cpu in psutil.cpu_freq(percpu=True) if cpu.current > 0]
    except (NotImplementedError, *FAILURES):
        return None
    is_measured = any((cpu.max or 0) > 0 for cpu in known) or _counts_cycles()
    return fmean(cpu.current for cpu in known) if known and is_measured else None


@cache
def _counts_cycles() -> bool:
    try:
        return "aperfmperf" in Path(psutil.PROCFS_PATH, "cpuinfo").read_text()
    except FAILURES:
        return False


FREQUENCY = "cpu.frequency"
GAUGES: tuple[Gauge, ...] = ()


def open_sampled(root: Path = ROOT) -> list[Sensor]:
    """Open the frequency, and each gauge."""
    report = measured(FREQUENCY, "frequency", "MHz", "mean over all CPUs of the machine", "psutil.cpu_freq")
    sensors = [Sensor(report, reason("no_frequency") if frequency_mhz() is None else frequency_mhz)]
    for gauge in GAUGES:
        files = str(root / gauge.files)
        report = measured(
            gauge.name, QUANTITIES[gauge.unit], gauge.unit, gauge.scope, files,
            counter=gauge.unit == "J", update_period_ns=gauge.update_period_ns, mean_over_ns=gauge.mean_over_ns,
        )  # fmt: skip
        why = reason("file_not_as_expected", file=files)
        sensors.append(Sensor(report, why if gauge.read(root) is None else partial(gauge.read, root)))
    return sensors


def open_edges(cpus: Sequence[int], root: Path = ROOT) -> list[EdgeSource]:
    """Open the counters; the machine's CPU times are those of `cpus` alone."""
    proc, no_pressure = root / "proc", reason("no_pressure")
    stat, vmstat, cpu, memory = proc / "stat", proc / "vmstat", proc / "pressure/cpu", proc / "pressure/memory"
    throttled = cgroup.throttling_file(root)
    quota_file = str(root / cgroup.MOUNT if isinstance(throttled, Reason) else throttled)
    quota = "control group with the nearest CPU quota, all its processes"
    times = f"CPUs {', '.join(map(str, cpus))}; all processes of the machine"
    waited = "machine: {}, of whichever process, waited for {}"
    this = "this process with all its threads, without its children"
    split = "getrusage; exact in sum, split by sampling at the kernel's ticks"
    usage = [
        _report("process.cpu_ns", "utilization", this, "CLOCK_PROCESS_CPUTIME_ID"),
        _report("process.user_ns", "utilization", this, split),
        _report("process.system_ns", "utilization", this, split),
        _report("process.minor_faults", "faults", this, "getrusage"),
        _report("process.major_faults", "faults", this, "getrusage"),
        _report("process.voluntary_switches", "switches", this, "getrusage"),
        _report("process.involuntary_switches", "switches", this, "getrusage"),
    ]
    return [
        counters_in(throttled, cgroup.throttling, [
            _report("cgroup.throttled_ns", "throttling", quota, quota_file),
            _report("cgroup.throttled_periods", "throttling", quota, quota_file),
        ]),
        counters_in(stat, times_parser(cpus), [
            _report("machine.busy_ns", "utilization", times, f"{stat}: user + nice + system + irq + softirq", TICK_NS),
            _report("machine.steal_ns", "contention", times, f"{stat}: steal, taken by the hypervisor", TICK_NS),
        ], STAT_LINE_B * (max(cpus, default=0) + 2)),
        counters_in(cpu if cpu.exists() else no_pressure, lambda content: pressure_ns(content)[:1], [
            _report("pressure.cpu_some_ns", "contention", waited.format("some task", "a CPU"), str(cpu)),
        ]),
        counters_in(memory if memory.exists() else no_pressure, pressure_ns, [
            _report("pressure.memory_some_ns", "contention", waited.format("some task", "memory"), str(memory)),
            _report("pressure.memory_full_ns", "contention", waited.format("full tasks", "memory"), str(memory)),
        ]),
        counters_in(vmstat, _swapped_b, [
            _report("machine.swapped_in_b", "memory", "machine, all processes", f"{vmstat}: pswpin, pages"),
            _report("machine.swapped_out_b", "memory", "machine, all processes", f"{vmstat}: pswpout, pages"),
        ], VMSTAT_B),
        EdgeSource(usage, _usage),
        counters_in(proc / "self/statm", lambda statm: (int(statm.split(maxsplit=2)[1]) * PAGE_B,), [
            replace(
                _report("process.resident_b", "memory", this, "/proc/self/statm; a gauge: the difference is growth"),
                counter=False,
            )
        ]),
        counters_in(proc / f"self/task/{os.getpid()}/children", _children_ns, [
            _report(
                "process.children_ns", "utilization", "the children of this process",
                "/proc/PID/stat of its children, and getrusage of those that have ended",
            ),
        ]),
    ]  # fmt: skip


def _report(name: str, quantity: str, scope: str, source: str, period_ns: int | None = None) -> SensorReport:
    """Return the report of a counter, whose name ends in its unit, unless it counts events."""
    unit = {"ns": "ns", "b": "B"}.get(name.rpartition("_")[2], "1")
    return measured(name, quantity, unit, scope, source, counter=True, update_period_ns=period_ns)


def times_parser(cpus: Sequence[int]) -> Callable[[bytes], tuple[int, int]]:
    """Return a parser of /proc/stat that gives busy and stolen time of `cpus` in ns, or raises ValueError.

    proc_stat(5): cpu user nice system idle iowait irq softirq steal guest guest_nice; user and nice include guests'.
    """
    names = [b"\ncpu%d " % cpu for cpu in cpus]

    def parse(stat: bytes) -> tuple[int, int]:
        busy = stolen = 0
        for name in names:
            begin = stat.index(name) + len(name)
            line = stat[begin : begin + STAT_LINE_B]
            user, nice, system, _, _, irq, softirq, steal = map(int, line.split(None, 8)[:8])
            busy += user + nice + system + irq + softirq
            stolen += steal
        return busy * TICK_NS, stolen * TICK_NS

    return parse


def pressure_ns(content: bytes) -> list[int]:
    """Return the totals of the lines "some avg10=… total=N" and "full …" of a pressure file, which has microseconds."""
    return [int(total.split(None, 1)[0]) * 1000 for total in content.split(b"total=")[1:]]


def _swapped_b(vmstat: bytes) -> tuple[int, int]:
    begin = vmstat.index(b"\npswpin ")
    _, pages_in, _, pages_out = vmstat[begin:].split(None, 4)[:4]
    return int(pages_in) * PAGE_B, int(pages_out) * PAGE_B


def _usage() -> tuple[int, ...]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (
        time.process_time_ns(),
        round(used.ru_utime * 1e6) * 1000,  # the kernel counts microseconds
        round(used.ru_stime * 1e6) * 1000,
        used.ru_minflt,
        used.ru_majflt,
        used.ru_nvcsw,
        used.ru_nivcsw,
    )


def _children_ns(pids: bytes) -> tuple[int]:
    """Return the CPU time of children that have ended, and of living ones with that of their own ended children.

    The processes of a data loader are such children, and do a part of the cell's work.
    """
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for pid in pids.split():
        try:
            # proc(5): fields 14 to 17 are utime, stime, cutime and cstime; the name before them may hold anything.
            fields = Path(f"/proc/{int(pid)}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # the child has ended meanwhile
            continue
        ticks += sum(map(int, fields[11:15]))
    return (round((ended.ru_utime + ended.ru_stime) * 1e9) + ticks * TICK_NS,)


def threads_named(name: str) -> int:
    """Return how many threads of this process have a name."""
    count = 0
    for comm in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # some threads end after they were listed
            count += comm.read_text() == f"{name}\n"
    return count


def peak_memory_b() -> int | None:
    """Return the high-water mark of this process's resident set (VmHWM); None if the kernel does not show it.

    `ru_maxrss` would keep the parent's mark across exec, and psutil 7.2 has no such mark.
    """
    try:
        return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split(None, 1)[0]) * 1024
    except FAILURES:
        return None


def process_age_ns() -> int | None:
    """Return the time since this process was created, to a kernel tick of 10 ms; None if it is not shown.

    psutil's `create_time` is off by up to a second, as it adds the tick to a boot time in whole seconds.
    """
    try:
        # proc(5): the 22nd field of stat is the start, in ticks since boot.
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except FAILURES:
        return None
    return max(0, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ticks * TICK_NS)
