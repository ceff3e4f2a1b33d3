"""Folders of hardware monitors and of a Cray node's counters on disk: stand in for the kernel's, below our code."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from planted_files import plant

from kit.sensors.protocol import now_ns

SCAN_S = 0.1


def plant_grace(root: Path, number: int = 0, interval_ms: int = 50, **watts: float) -> Path:
    """A Grace socket's ACPI meter as the kernel has it: attributes in `device`, microwatts."""
    files = {f"hwmon{number}/name": "power_meter\n"}
    for channel, (label, watt) in enumerate(watts.items(), 1):
        folder = f"hwmon{number}/device/power{channel}"
        files |= {f"{folder}_average": f"{int(watt * 1e6)}\n", f"{folder}_average_interval": f"{interval_ms}\n"}
        files |= {f"{folder}_oem_info": f"{label.replace('_', ' ')} Socket {number}\n"} if label != "meter" else {}
    return plant(root, files)


class CrayNode:
    """Scans ten times a second, as the controller does: `freshness` grows, then the values change.

    Args:
        root: of the counters.
        watts: of a part ("cpu", "accel0", "" for the node), at the seconds since the begin.
    """

    def __init__(self, root: Path, watts: dict[str, Callable[[float], float]]) -> None:
        self._root, self._watts = root, watts
        self._joules = dict.fromkeys(watts, 1_000_000.0)
        self._scan = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        plant(root, {"raw_scan_hz": "10\n", "freshness": "0\n", "power_cap": "0 W\n"})
        self._last_ns = self.begin_ns = now_ns()
        self.scan()

    def scan(self) -> None:
        """Write every counter, each file whole, as one read of it sees them."""
        at_ns = now_ns()
        for part, watts in self._watts.items():
            power_w = watts((at_ns - self.begin_ns) / 1e9)
            self._joules[part] += power_w * (at_ns - self._last_ns) / 1e9
            prefix = f"{part}_" if part else ""
            stamp = f"{at_ns // 1000} us"
            self._replace(f"{prefix}power", f"{power_w:.0f} W {stamp}\n")
            self._replace(f"{prefix}energy", f"{self._joules[part]:.3f} J {stamp}\n")
        self._scan, self._last_ns = self._scan + 1, at_ns
        self._replace("freshness", f"{self._scan}\n")

    def _replace(self, name: str, text: str) -> None:
        beside = self._root / f".{name}"
        beside.write_text(text)
        os.replace(beside, self._root / name)  # noqa: PTH105

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(SCAN_S):
            self.scan()
