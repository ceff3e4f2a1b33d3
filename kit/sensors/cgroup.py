"""Where the control group of a process keeps its files, version 1 and 2, and what they say of CPU and memory."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

CGROUP_ROOT = Path("/sys/fs/cgroup")
PROC = Path("/proc")
# Version 1 writes "no limit" as the largest multiple of a page; nothing near 2^60 bytes is a real limit.
NO_MEMORY_LIMIT_B = 1 << 60


class Cgroup(NamedTuple):
    """The folders that govern a process, its own first and then each parent that is visible here."""

    version: int
    folders: list[Path]


class Throttling(NamedTuple):
    """Cumulative: how often a quota stopped the group, and for how long."""

    stopped: int
    stopped_ns: int


def locate(controller: str, pid: int | str = "self", root: Path = CGROUP_ROOT, proc: Path = PROC) -> Cgroup | None:
    """Find the group of `pid` for "cpu" or "memory"; None where none is mounted.

    Inside a container the path that the kernel names may lie above what is mounted: the mount itself is then the group.
    """
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            mount = _version1_mount(controller, root)
            if mount is not None:
                return Cgroup(1, _folders(mount, path))
    if (root / "cgroup.controllers").exists():
        path = next((line.split(":", 2)[2] for line in lines if line.startswith("0::")), "/")
        return Cgroup(2, _folders(root, path))
    return None


def cpu_limit(cgroup: Cgroup) -> float | None:
    """CPUs that the tightest quota on the way up allows; None: no quota."""
    limits = [limit for folder in cgroup.folders if (limit := _quota(cgroup.version, folder)) is not None]
    return min(limits, default=None)


def memory_limit_b(cgroup: Cgroup) -> int | None:
    """Bytes that the tightest limit on the way up allows; None: no limit."""
    name = "memory.limit_in_bytes" if cgroup.version == 1 else "memory.max"
    words = [_read(folder / name) for folder in cgroup.folders]
    limits = [int(word) for word in words if word is not None and word.isdigit()]
    return min((limit for limit in limits if limit < NO_MEMORY_LIMIT_B), default=None)


def governing_folder(cgroup: Cgroup) -> Path:
    """The nearest folder with a CPU quota, where throttling is counted; without a quota the process's own."""
    for folder in cgroup.folders:
        if _quota(cgroup.version, folder) is not None:
            return folder
    return cgroup.folders[0]


def throttling(cpu_stat: bytes) -> Throttling | None:
    """Counters in the content of `cpu.stat`; None where the group keeps none (the root group of version 2).

    Raises:
        ValueError: a counter is not a number.
    """
    words = cpu_stat.split()
    fields = dict(zip(words[::2], words[1::2], strict=False))
    stopped = fields.get(b"nr_throttled")
    if stopped is None:
        return None
    if (microseconds := fields.get(b"throttled_usec")) is not None:  # version 2
        return Throttling(int(stopped), int(microseconds) * 1000)
    if (nanoseconds := fields.get(b"throttled_time")) is not None:  # version 1
        return Throttling(int(stopped), int(nanoseconds))
    return None


def _version1_mount(controller: str, root: Path) -> Path | None:
    """The mount that holds a controller: `cpu`, or joined as `cpu,cpuacct`."""
    try:
        return next((folder for folder in sorted(root.iterdir()) if controller in folder.name.split(",")), None)
    except OSError:
        return None


def _folders(mount: Path, path: str) -> list[Path]:
    own = mount / path.lstrip("/")
    if ".." in own.parts or not own.is_dir():
        return [mount]
    return [own, *(parent for parent in own.parents if parent == mount or mount in parent.parents)]


def _quota(version: int, folder: Path) -> float | None:
    if version == 1:
        quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    else:
        quota, _, period = (_read(folder / "cpu.max") or "max").partition(" ")
    if quota is None or period is None or not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None  # "max" in version 2, -1 in version 1
    return int(quota) / int(period)


def _read(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None
