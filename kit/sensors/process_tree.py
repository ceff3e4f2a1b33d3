"""CPU time and resident memory of one process and its children, the sampler left out.

worker ─┬─ loader 0      CPU time of the tree = CPU clock of each live process
        ├─ loader 1                            + what each has reaped from children that ended
        └─ sampler       (left out)            − what each had used before it was first seen

What a process used before the tree first saw it cannot be placed in time, so it must not appear as a jump: it counts
only where the process began after the previous look.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import NamedTuple

from kit.profile.sensor import SensorReport
from kit.sensors import names
from kit.sensors.held_file import HeldFile
from kit.sensors.protocol import Sensor
from kit.sensors.source import Readable, Unavailable
from kit.sensors.stamp import now_ns

# Finding children means listing the threads of every process of the tree: once a second, not at every reading.
# A child that lives for less is counted when its parent reaps it.
RESCAN_NS = 1_000_000_000
# Readings of one tick share one look at the tree; ticks are 100 ms apart.
SAME_TICK_NS = 20_000_000
# proc_pid_stat(5): a process's start is in ticks, rounded down.
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# Linux, include/linux/posix-timers_types.h: CPUCLOCK_SCHED, the nanosecond run time of a whole process.
CPUCLOCK_SCHED = 2

_PAGE_B = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """What processes have used. CPU seconds are cumulative and hold those of reaped children."""

    cpu_s: float
    resident_b: int


class Process:
    """One live process, held by its open /proc/PID/stat.

    Raises:
        OSError: from the constructor and from `usage`: the process is gone.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._stat = HeldFile(Path(f"/proc/{pid}/stat"))

    def started_ns(self) -> int:
        """On CLOCK_BOOTTIME, rounded down to a tick."""
        return int(self._fields()[19]) * TICK_NS

    def usage(self) -> Usage:
        """Read now. The CPU clock counts nanoseconds, where /proc/PID/stat counts ticks of 10 ms."""
        fields = self._fields()
        user, system, reaped_user, reaped_system = (int(field) for field in fields[11:15])
        try:
            own_s = time.clock_gettime_ns((~self.pid << 3) | CPUCLOCK_SCHED) / 1e9
        except OSError:
            own_s = (user + system) / _TICKS_PER_S
        return Usage(own_s + (reaped_user + reaped_system) / _TICKS_PER_S, int(fields[21]) * _PAGE_B)

    def _fields(self) -> list[bytes]:
        # proc_pid_stat(5), fields from the third: the second, the name, may itself hold spaces and parentheses.
        return self._stat.read().rpartition(b")")[2].split()

    def close(self) -> None:
        """Let go of the process."""
        self._stat.close()


class ProcessTree:
    """Looks at a process and its children.

    Raises:
        OSError: from the constructor, if the process is gone.
    """

    def __init__(self, pid: int, excluded_pid: int | None = None) -> None:
        self._root_pid = pid
        self._excluded_pid = excluded_pid
        self._members = {pid: Process(pid)}
        self._unplaced_s = 0.0  # CPU seconds that no look can place in time
        self._looked_boottime_ns: int | None = None
        self._scanned_ns = 0
        self._looked_ns = 0
        self._usage: Usage | None = None

    def cpu_s(self) -> float | None:
        """CPU seconds of the tree, cumulative from an arbitrary zero; None when the root is gone."""
        usage = self.usage()
        return None if usage is None else usage.cpu_s

    def resident_b(self) -> float | None:
        """Resident bytes of the tree, shared pages counted once per process; None when the root is gone."""
        usage = self.usage()
        return None if usage is None else float(usage.resident_b)

    def usage(self) -> Usage | None:
        """The tree's, at most `SAME_TICK_NS` old; None when the root is gone."""
        at_ns = now_ns()
        if at_ns - self._looked_ns >= SAME_TICK_NS:
            self._looked_ns = at_ns
            if at_ns - self._scanned_ns >= RESCAN_NS:
                self._scanned_ns = at_ns
                self._find_members()
            self._usage = self._look()
        return self._usage

    def close(self) -> None:
        """Let go of every process."""
        for process in self._members.values():
            process.close()
        self._members = {}

    def _look(self) -> Usage | None:
        self._looked_boottime_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        # Of those that ended too: their parent has reaped all that they used.
        cpu_s, resident_b = -self._unplaced_s, 0
        for process in list(self._members.values()):
            try:
                usage = process.usage()
            except OSError:
                process.close()
                del self._members[process.pid]
                continue
            cpu_s += usage.cpu_s
            resident_b += usage.resident_b
        return Usage(cpu_s, resident_b) if self._root_pid in self._members else None

    def _find_members(self) -> None:
        found = [self._root_pid] if self._root_pid in self._members else []
        for pid in found:
            found.extend(child for child in child_pids(pid) if child != self._excluded_pid)
        for pid in set(found) - set(self._members):
            with contextlib.suppress(OSError):
                process = Process(pid)
                if self._looked_boottime_ns is not None and process.started_ns() + TICK_NS <= self._looked_boottime_ns:
                    self._unplaced_s += process.usage().cpu_s
                self._members[pid] = process


def child_pids(pid: int) -> list[int]:
    """Pids of the direct children, as the kernel lists them for each thread (CONFIG_PROC_CHILDREN).

    Reading every process of the machine instead takes a hundred times as long.
    """
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found.extend(int(word) for word in (task / "children").read_bytes().split())
    return found


def open_all(pid: int, excluded_pid: int | None = None) -> list[Sensor]:
    """CPU time and resident memory of the tree under `pid`."""
    scope = "process and its children, the sampler left out"
    if not Path("/proc/self/task", str(os.getpid()), "children").exists():
        scope = "process alone: this kernel lists no children (CONFIG_PROC_CHILDREN)"
    try:
        tree = ProcessTree(pid, excluded_pid)
    except OSError as error:
        reason = f"process {pid} cannot be watched: {error.strerror}"
        return [
            Unavailable(names.PROCESS_TIME, "utilization", "s", scope, "/proc", reason=reason),
            Unavailable(names.RESIDENT_MEMORY, "memory", "B", scope, "/proc", reason=reason),
        ]
    clocks = "CPU clock of each process, and /proc/PID/stat for reaped children; cumulative"
    pages = "/proc/PID/stat: rss; shared pages counted once per process"
    return [
        Readable(_report(names.PROCESS_TIME, "utilization", "s", scope, clocks), tree.cpu_s, close=tree.close),
        Readable(_report(names.RESIDENT_MEMORY, "memory", "B", scope, pages), tree.resident_b),
    ]


def _report(name: str, quantity: str, unit: str, scope: str, source: str) -> SensorReport:
    return SensorReport(name=name, quantity=quantity, unit=unit, scope=scope, source=source, status="measured")
