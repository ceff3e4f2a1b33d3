"""Control groups, version 1 and 2: where a process's group keeps its files, its limits, and throttling by its quota."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kit.profile.reason import Reason, reason

ROOT = Path("/")
MOUNT = "sys/fs/cgroup"
# Version 1 writes "no limit" as the largest multiple of a page; nothing near 2^60 bytes is a real limit.
NO_MEMORY_LIMIT_B = 1 << 60


class Cgroup(NamedTuple):
    """The folders that govern this process, its own first, then each parent that is visible here; none: not mounted."""

    version: int
    folders: list[Path]


def locate(controller: str, root: Path = ROOT) -> Cgroup:
    """Find this process's group for "cpu" or "memory".

    Inside a container the path that the kernel names may lie above what is mounted: the mount itself is then the group.
    """
    try:
        lines = [line.split(":", 2) for line in (root / "proc/self/cgroup").read_text().splitlines()]
        mounts = sorted((root / MOUNT).iterdir())
    except OSError:
        return Cgroup(2, [])
    path = next((path for _, names, path in lines if controller in names.split(",")), None)
    mount = next((folder for folder in mounts if controller in folder.name.split(",")), None)
    version = 2 if path is None or mount is None else 1
    if path is None or mount is None:
        mount = root / MOUNT
        if not (mount / "cgroup.controllers").exists():
            return Cgroup(2, [])
        path = next((path for number, _, path in lines if number == "0"), "/")
    folder = mount / path.lstrip("/")
    if ".." in folder.parts or not folder.is_dir():
        folder = mount
    return Cgroup(version, [parent for parent in (folder, *folder.parents) if parent.is_relative_to(mount)])


def cpu_limit(group: Cgroup) -> float | None:
    """Return the CPUs that the tightest quota on the way up allows; None: no quota."""
    return min(filter(None, (_quota(group.version, folder) for folder in group.folders)), default=None)


def memory_limit_b(group: Cgroup) -> int | None:
    """Return the bytes that the tightest limit on the way up allows; None: no limit."""
    name = "memory.limit_in_bytes" if group.version == 1 else "memory.max"
    words = [_read(folder / name) for folder in group.folders]
    return min((int(word) for word in words if word.isdigit() and int(word) < NO_MEMORY_LIMIT_B), default=None)


def throttling_file(root: Path = ROOT) -> Path | Reason:
    """Return `cpu.stat` of the nearest group with a CPU quota, or else of the process's own; or why none counts."""
    group = locate("cpu", root)
    if not group.folders:
        return reason("no_cpu_controller", root=str(root / MOUNT))
    limited = (folder for folder in group.folders if _quota(group.version, folder) is not None)
    file = next(limited, group.folders[0]) / "cpu.stat"
    # The root group of version 2 counts none.
    return file if "nr_throttled" in _read(file) else reason("no_throttling_count", file=str(file))


def throttling(cpu_stat: bytes) -> tuple[int, int]:
    """Return for how many ns a quota has kept the group's tasks off the CPU, and in how many of its periods.

    Raises:
        ValueError: a counter is not in `cpu_stat`, or not a number.
    """
    words = cpu_stat.split()
    name, unit_ns = (b"throttled_usec", 1000) if b"throttled_usec" in words else (b"throttled_time", 1)
    return int(words[words.index(name) + 1]) * unit_ns, int(words[words.index(b"nr_throttled") + 1])


def _quota(version: int, folder: Path) -> float | None:
    if version == 1:
        quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    else:
        quota, _, period = _read(folder / "cpu.max").partition(" ")
    # No quota is "max" in version 2, -1 in version 1.
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _read(file: Path) -> str:
    """Return what the file holds; nothing where it cannot be read."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""
