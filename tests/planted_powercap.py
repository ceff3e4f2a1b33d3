"""A powercap tree on disk that a thread moves along a known energy: stands in for the kernel's, below our code."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from planted_files import plant

from kit.sensors.sources import now_ns

RANGE_UJ = 262_143_328_850


def plant_zone(root: Path, zone: str, domain: str, energy_uj: int = 0, range_uj: int = RANGE_UJ) -> Path:
    files = {"name": domain, "max_energy_range_uj": f"{range_uj}", "energy_uj": f"{energy_uj:015d}"}
    return plant(root / zone, {name: f"{text}\n" for name, text in files.items()})


class PowerCurve:
    """Writes `energy_uj` every millisecond, as the hardware does, and wraps at the range.

    Args:
        folder: of the zone.
        joules: of the seconds since `begin_ns`.
        start_uj: the counter at `begin_ns`.
    """

    def __init__(self, folder: Path, joules: Callable[[float], float], start_uj: int = 0) -> None:
        self._fd = os.open(folder / "energy_uj", os.O_WRONLY)
        self._joules, self._start_uj = joules, start_uj
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.begin_ns = now_ns()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        os.close(self._fd)

    def _write(self) -> None:
        while not self._stop.wait(0.001):
            energy_uj = self._start_uj + int(1e6 * self._joules((now_ns() - self.begin_ns) / 1e9))
            os.pwrite(self._fd, f"{energy_uj % RANGE_UJ:015d}\n".encode(), 0)
