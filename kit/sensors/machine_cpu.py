"""CPU time of the machine, whoever used it: busy, stolen, and waited for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kit.profile.reason import reason
from kit.profile.sensor import SensorReport
from kit.sensors.protocol import EdgeSource, counters_in

PROC = Path("/proc")
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# One line a CPU: a name and ten numbers of twenty digits at most.
_LINE_B = 240

_report = partial(SensorReport, unit="ns", status="measured", counter=True)


def open_edges(cpus: Sequence[int], proc: Path = PROC) -> list[EdgeSource]:
    """Open the CPU times of `cpus`, summed, and the machine's CPU pressure."""
    return [_times(cpus, proc / "stat"), _pressure(proc / "pressure/cpu")]


def _times(cpus: Sequence[int], file: Path) -> EdgeSource:
    """proc_stat(5): cpu user nice system idle iowait irq softirq steal guest guest_nice; user and nice hold guests'."""
    scope = f"CPUs {', '.join(map(str, cpus))}; all processes of the machine"
    report = partial(_report, scope=scope, update_period_ns=TICK_NS)
    reports = [
        report(name="machine.busy_ns", quantity="utilization", source=f"{file}: user + nice + system + irq + softirq"),
        report(name="machine.steal_ns", quantity="contention", source=f"{file}: steal, taken by the hypervisor"),
    ]
    return counters_in(file, times_parser(cpus), reports, _LINE_B * (max(cpus, default=0) + 2))


def times_parser(cpus: Sequence[int]) -> Callable[[bytes], tuple[int, int]]:
    """Return what finds busy and stolen time of `cpus`, in ns, in /proc/stat; it raises ValueError where it cannot."""
    marks = [b"\ncpu%d " % cpu for cpu in cpus]

    def parse(stat: bytes) -> tuple[int, int]:
        busy = stolen = 0
        for mark in marks:
            begin = stat.index(mark) + len(mark)
            user, nice, system, _, _, irq, softirq, steal = map(int, stat[begin : begin + _LINE_B].split(None, 8)[:8])
            busy += user + nice + system + irq + softirq
            stolen += steal
        return busy * TICK_NS, stolen * TICK_NS

    return parse


def _pressure(file: Path) -> EdgeSource:
    """Pressure stall information, of Linux 4.20 and later."""
    scope = "machine: some task, of whichever process, waited for a CPU"
    report = _report(name="pressure.cpu_some_ns", quantity="contention", scope=scope, source=str(file))
    if not file.exists():
        return EdgeSource([report], reason("no_pressure"))
    return counters_in(file, lambda content: (pressure_some_ns(content),), [report])


def pressure_some_ns(content: bytes) -> int:
    """Return the cumulative time of the first line, "some avg10=… total=N" in µs; raises ValueError or IndexError."""
    return int(content.split(b"total=")[1].split()[0]) * 1000
