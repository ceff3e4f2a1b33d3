"""Control groups, version 1 and 2: where a process's group keeps its files, its limits, and throttling by its quota."""

from __future__ import annotations

from pathlib import Path

from kit.profile.fields import Reason, reason
from kit.sensors.sources import read_text

ROOT = Path("/")
MOUNT = "sys/fs/cgroup"
# Version 1 writes "no limit" as the largest multiple of a page; nothing near 2^60 bytes is a real limit.
NO_MEMORY_LIMIT_B = 1 << 60


def folders(controller: str, root: Path = ROOT) -> list[Path]:
    """Return the folders that limit "cpu" or "memory" of this process, from its own group up; none: not mounted.

    In a container the kernel can name a path above what is mounted. The mount itself is then the group.
    """
    mount, paths = root / MOUNT, dict[str, str]()
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)  # as "4:cpu,cpuacct:/box"; version 2 names no controller
        paths |= dict.fromkeys(controllers.split(","), path)
    version_1 = next((folder for folder in sorted(mount.glob("*")) if controller in folder.name.split(",")), None)
    if controller in paths and version_1 is not None:
        mount, path = version_1, paths[controller]
    elif (mount / "cgroup.controllers").exists():
        path = paths.get("", "/")
    else:
        return []
    group = mount / path.lstrip("/")
    if ".." in group.parts or not group.is_dir():
        group = mount
    return [folder for folder in (group, *group.parents) if folder.is_relative_to(mount)]


def cpu_limit(root: Path = ROOT) -> float | None:
    """Return the number of CPUs that the tightest quota on the way up allows; None: no quota."""
    return min(filter(None, map(_quota, folders("cpu", root))), default=None)


def memory_limit_b(root: Path = ROOT) -> int | None:
    """Return the bytes that the tightest limit on the way up allows; None: no limit."""
    words = [shown(folder, "memory.max", "memory.limit_in_bytes") for folder in folders("memory", root)]
    return min((int(word) for word in words if word.isdigit() and int(word) < NO_MEMORY_LIMIT_B), default=None)


def throttling_file(root: Path = ROOT) -> Path | Reason:
    """Return `cpu.stat` of the nearest group with a CPU quota, or of the process's own group; or why none counts."""
    groups = folders("cpu", root)
    if not groups:
        return reason("no_cpu_controller", root=str(root / MOUNT))
    file = next(filter(_quota, groups), groups[0]) / "cpu.stat"
    # The root group of version 2 counts no throttling.
    return file if "nr_throttled" in read_text(file) else reason("no_throttling_count", file=str(file))


def throttling(cpu_stat: bytes) -> tuple[int, int]:
    """Return for how many ns a quota has kept the group's tasks off the CPU, and in how many of its periods.

    Raises:
        ValueError: a counter is not in `cpu_stat`, or not a number.
    """
    words = cpu_stat.split()
    name, unit_ns = (b"throttled_usec", 1000) if b"throttled_usec" in words else (b"throttled_time", 1)
    return int(words[words.index(name) + 1]) * unit_ns, int(words[words.index(b"nr_throttled") + 1])


def shown(folder: Path, version_2: str, version_1: str) -> str:
    """Return what a group's file holds, which each version gives another name; nothing if it cannot be read."""
    return read_text(folder / version_2) or read_text(folder / version_1)


def _quota(folder: Path) -> float | None:
    """Return how many CPUs a group can use; None: no quota, which is "max" in version 2 and -1 in version 1."""
    version_1 = (read_text(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    quota, _, period = (read_text(folder / "cpu.max") or " ".join(version_1)).partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None
