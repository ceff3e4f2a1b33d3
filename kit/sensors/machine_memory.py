"""Memory of the machine, whoever wants it: time in which tasks waited for it, and what was moved to and from swap."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kit.profile.reason import reason
from kit.profile.sensor import SensorReport
from kit.sensors.protocol import EdgeSource, counters_in

PROC = Path("/proc")
_PAGE_B = os.sysconf("SC_PAGE_SIZE")
# Two hundred lines of a name and a number.
_VMSTAT_B = 16384

_report = partial(SensorReport, status="measured", counter=True)


def open_edges(_cpus: Sequence[int], proc: Path = PROC) -> list[EdgeSource]:
    """Open memory pressure and swapping."""
    pressure, vmstat = proc / "pressure/memory", proc / "vmstat"
    stalls = [
        _report(
            name=f"pressure.memory_{who}_ns",
            quantity="contention",
            unit="ns",
            scope=f"machine: {who} task{'' if who == 'some' else 's'}, of whichever process, waited for memory",
            source=str(pressure),
        )
        for who in ("some", "full")
    ]
    moved = [
        _report(
            name=f"machine.swapped_{way}_b",
            quantity="memory",
            unit="B",
            scope="machine, all processes",
            source=f"{vmstat}: pswp{way}, pages",
        )
        for way in ("in", "out")
    ]
    swapping = counters_in(vmstat, _swapped_b, moved, _VMSTAT_B)
    if not pressure.exists():
        return [EdgeSource(stalls, reason("no_pressure")), swapping]
    return [counters_in(pressure, _stalled_ns, stalls), swapping]


def _stalled_ns(content: bytes) -> tuple[int, ...]:
    """Return the totals of both lines, "some avg10=… total=N" and "full …", which are in µs."""
    some, full = (int(total) * 1000 for total in re.findall(rb"total=(\d+)", content))
    return some, full


def _swapped_b(vmstat: bytes) -> tuple[int, ...]:
    begin = vmstat.index(b"\npswpin ")
    _, pages_in, _, pages_out = vmstat[begin : begin + 80].split(None, 4)[:4]
    return int(pages_in) * _PAGE_B, int(pages_out) * _PAGE_B
