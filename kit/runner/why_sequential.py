"""Why the workers of a round cannot be alive together, and so do not take turns in blocks.

blocks       A B C │ B C A │ C A B …     every worker once a cycle; a pair is compared within its cycle
sequential   A A A … B B B … C C C …     one device for one process, or no memory for all; compared by the round
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from kit.devices import DEVICES
from kit.profile.cell import Cell
from kit.profile.fields import Reason, reason
from kit.profile.schema import Launch
from kit.sensors import cgroup

# A worker grows while it runs; what is left to the system keeps it from reclaiming the workers' pages.
GROWTH = 1.25
RESERVE_B = 256 << 20
# What a worker says where a program wants more of its device than there is for it.
OUT_OF_DEVICE_MEMORY = "out_of_device_memory"
LACK_OF_DEVICE_MEMORY = "lack_of_device_memory"


def exclusive_device(cells: Sequence[Cell]) -> Reason | None:
    """Return why only one process may hold the device of these cells; None where several may."""
    exclusive = (cell.device for cell in cells if DEVICES[cell.device].is_exclusive(cell.devices))
    device = next(exclusive, None)
    return None if device is None else reason("exclusive_device", device=device)


def lack_of_memory(needed_b: int) -> Reason | None:
    """Return why no further worker of `needed_b` bytes fits; None where it does."""
    available_b, wanted_b = available_memory_b(), round(needed_b * GROWTH) + RESERVE_B
    if available_b >= wanted_b:
        return None
    return reason("lack_of_memory", needed_b=wanted_b, available_b=available_b)


def lack_of_device_memory(launches: Iterable[Launch], share: float) -> Reason | None:
    """Return which launch ran out of its share of the device's memory, while others had theirs; None where none did."""
    for launch in launches:
        if launch.failure is not None and launch.failure.reason.code == OUT_OF_DEVICE_MEMORY:
            return reason(LACK_OF_DEVICE_MEMORY, cell=launch.cell_key, share_pct=100 * share)
    return None


def available_memory_b() -> int:
    """Return the bytes that processes can still take: of the machine, or of the control group where that is less."""
    available_b = int(psutil.virtual_memory().available)
    limit_b = cgroup.memory_limit_b()
    if limit_b is None:
        return available_b
    for folder in cgroup.folders("memory"):
        with suppress(OSError, ValueError):
            used_b = int(cgroup.shown(folder, "memory.current", "memory.usage_in_bytes"))
            return max(0, min(available_b, limit_b - used_b + _reclaimable_b(folder)))
    return min(available_b, limit_b)


def _reclaimable_b(folder: Path) -> int:
    """Page cache that counts as used and is given up when memory is wanted."""
    for line in (folder / "memory.stat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file"):
            return int(value)
    return 0
