"""What the process itself has used: CPU time, page faults, context switches, memory; and its children's CPU time."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kit.profile.sensor import SensorReport
from kit.sensors.machine_cpu import TICK_NS
from kit.sensors.protocol import FAILURES, EdgeSource, counters_in

PROC_SELF = Path("/proc/self")
_PAGE_B = os.sysconf("SC_PAGE_SIZE")

_report = partial(
    SensorReport, scope="this process with all its threads, without its children", status="measured", counter=True
)
_SPLIT = "getrusage; exact in sum, split by sampling at the kernel's ticks"
USAGE = [
    _report(name="process.cpu_ns", quantity="utilization", unit="ns", source="CLOCK_PROCESS_CPUTIME_ID"),
    _report(name="process.user_ns", quantity="utilization", unit="ns", source=_SPLIT),
    _report(name="process.system_ns", quantity="utilization", unit="ns", source=_SPLIT),
    _report(name="process.minor_faults", quantity="faults", unit="1", source="getrusage"),
    _report(name="process.major_faults", quantity="faults", unit="1", source="getrusage"),
    _report(name="process.voluntary_switches", quantity="switches", unit="1", source="getrusage"),
    _report(name="process.involuntary_switches", quantity="switches", unit="1", source="getrusage"),
]
CHILDREN = SensorReport(
    name="process.children_ns",
    quantity="utilization",
    unit="ns",
    scope="the children of this process",
    source="/proc/PID/stat of its children, and getrusage of those that have ended",
    status="measured",
    counter=True,
)
RESIDENT = _report(
    name="process.resident_b",
    quantity="memory",
    unit="B",
    source="/proc/self/statm; a gauge: the difference is growth",
    counter=False,
)


def open_edges(_cpus: Sequence[int]) -> list[EdgeSource]:
    """Open the counters of this process."""
    resident = counters_in(PROC_SELF / "statm", lambda statm: (int(statm.split(maxsplit=2)[1]) * _PAGE_B,), [RESIDENT])
    children = counters_in(PROC_SELF / f"task/{os.getpid()}/children", _children_ns, [CHILDREN])
    return [EdgeSource(USAGE, _usage), resident, children]


def _children_ns(pids: bytes) -> tuple[int]:
    """Return the CPU time of children that have ended, and of those that live with what theirs have ended.

    The workers of a data loader are such children: what they use is the cell's own work.
    """
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for pid in pids.split():
        try:
            # proc(5): fields 14 to 17 are utime, stime, cutime and cstime; the name before them may hold anything.
            fields = Path(f"/proc/{int(pid)}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        ticks += sum(map(int, fields[11:15]))
    return (round((ended.ru_utime + ended.ru_stime) * 1e9) + ticks * TICK_NS,)


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


def peak_memory_b() -> int | None:
    """Return the high-water mark of this process's resident set (VmHWM); None where the kernel does not say.

    Not `ru_maxrss`: that keeps the parent's mark across exec.
    """
    try:
        status = (PROC_SELF / "status").read_text()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), None)


def process_age_ns() -> int | None:
    """Return the time since this process was created, to a kernel tick of 10 ms; None where it is not shown."""
    try:
        # The 22nd field of proc(5)'s stat, in ticks since boot; the name before it, in brackets, may hold anything.
        ticks = int((PROC_SELF / "stat").read_text().rpartition(")")[2].split()[19])
    except FAILURES:
        return None
    return max(0, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ticks * TICK_NS)
