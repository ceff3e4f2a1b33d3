"""A powercap tree on disk that a thread moves along a known power: stands in for the kernel's, below our code."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Self


def plant_zone(root: Path, zone: str, domain: str, energy_uj: int = 0, range_uj: int = 262_143_328_850) -> Path:
    folder = root / zone
    folder.mkdir(parents=True)
    (folder / "name").write_text(domain + "\n")
    (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")
    (folder / "energy_uj").write_text(f"{energy_uj:015d}\n")
    return folder


class PowerCurve:
    """Writes `energy_uj` every millisecond, as the hardware does, at a constant power; wraps at the range."""

    def __init__(self, folder: Path, power_w: float, start_uj: int, range_uj: int) -> None:
        self._fd = os.open(folder / "energy_uj", os.O_WRONLY)
        self._power_w, self._start_uj, self._range_uj = power_w, start_uj, range_uj
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        os.close(self._fd)

    def _write(self) -> None:
        begin_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        while not self._stop.wait(0.001):
            elapsed_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - begin_ns
            energy_uj = self._start_uj + int(self._power_w * elapsed_ns / 1000)
            os.pwrite(self._fd, f"{energy_uj % self._range_uj:015d}\n".encode(), 0)
