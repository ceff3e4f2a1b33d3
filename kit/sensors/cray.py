"""Power and energy of a Cray node and its parts, by the counters that its controller writes; no root is needed.

    /sys/cray/pm_counters/freshness       1832                        grows with every scan, ten a second
                          energy          8871934 J 1700000000123456 us
                          power           412 W 1700000000123456 us
                          cpu_energy, memory_energy, accel0_energy …  and their power

The node's include its parts. Which board is accel0 is not told, and one may be two devices to a framework (MI250X) or
a whole module (GH200): they stand beside a board's own counter, and are never taken for a GPU.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kit.environment import CRAY_ROOT
from kit.profile.reason import Reason, reason
from kit.profile.sensor import SensorReport
from kit.sensors.protocol import FAILURES, Sensor, file_obstacle

COUNTER = re.compile(r"(?:(cpu\d*|memory|accel\d*)_)?(energy|power)")
# HPE, "User access to compute node power data": 10 scans a second, unless raw_scan_hz says otherwise.
SCANS_PER_S = 10
# A scan takes far less than the tenth of a second until the next.
TRIES = 3
SCOPES = {
    "node": "whole node, accelerators included; all processes",
    "cpu": "all processors of the node; all processes",
    "memory": "memory of the node; all processes",
    "accel": "all accelerator modules of the node; all processes",
    "cpuN": "one processor of the node; all processes",
    "accelN": "one accelerator module, maybe several devices; all processes",
}


def open_sampled() -> list[Sensor]:
    """Open a sensor for each counter and each power, or one that says which obstacle there is.

    KIT_CRAY_ROOT is the folder of counters where it is elsewhere than the kernel has it.
    """
    root = Path(os.environ.get(CRAY_ROOT, "/sys/cray/pm_counters"))
    files = [(file, match) for file in sorted(root.glob("*")) if (match := COUNTER.fullmatch(file.name))]
    period_ns = 10**9 // _scans_per_s(root)
    sensors = [
        Sensor(_report(match[1] or "node", match[2], str(file), period_ns), _reader(file)) for file, match in files
    ]
    if sensors:
        return sensors
    why = reason("no_cray_counter" if root.is_dir() else "no_cray", root=str(root))
    return [Sensor(_report("node", "energy", str(root), period_ns), why)]


def _report(part: str, quantity: str, source: str, period_ns: int) -> SensorReport:
    scope = SCOPES[part] if part in SCOPES else SCOPES[part.rstrip("0123456789") + "N"]
    return SensorReport(
        name=f"cray.{part}.{quantity}",
        quantity=quantity,
        unit="J" if quantity == "energy" else "W",
        scope=scope,
        source=source,
        status="measured",
        counter=quantity == "energy",
        update_period_ns=period_ns,
    )


def _reader(file: Path) -> Callable[[], float | None] | Reason:
    """Return what gives each scan's value once: None until the next scan, whatever the file holds until then."""
    freshness, last_scan = file.with_name("freshness"), -1

    def value() -> float | None:
        nonlocal last_scan
        for _ in range(TRIES):
            scan = int(freshness.read_text())
            if scan == last_scan:
                return None
            read = float(file.read_text().split()[0])
            if int(freshness.read_text()) == scan:
                last_scan = scan
                return read
        return None

    try:
        value()
    except FAILURES as error:
        return file_obstacle(Path(getattr(error, "filename", None) or file), error)
    return value


def _scans_per_s(root: Path) -> int:
    with suppress(*FAILURES):
        return int((root / "raw_scan_hz").read_text().split()[0]) or SCANS_PER_S
    return SCANS_PER_S
