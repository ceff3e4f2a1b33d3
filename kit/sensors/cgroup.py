"""Control groups, version 1 and 2: where a process's group keeps its files, its limits, and throttling by its quota."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kit.profile.reason import Reason, reason
from kit.profile.sensor import SensorReport
from kit.sensors.protocol import EdgeSource, counters_in

CGROUP_ROOT = Path("/sys/fs/cgroup")
PROC = Path("/proc")
# Version 1 writes "no limit" as the largest multiple of a page; nothing near 2^60 bytes is a real limit.
NO_MEMORY_LIMIT_B = 1 << 60


class Cgroup(NamedTuple):
    """The folders that govern this process, its own first, then each parent that is visible here; none: not mounted."""

    version: int
    folders: list[Path]


def locate(controller: str, root: Path = CGROUP_ROOT, proc: Path = PROC) -> Cgroup:
    """Find this process's group for "cpu" or "memory".

    Inside a container the path that the kernel names may lie above what is mounted: the mount itself is then the group.
    """
    try:
        lines = [line.split(":", 2) for line in (proc / "self/cgroup").read_text().splitlines()]
        mounts = sorted(root.iterdir())
    except OSError:
        return Cgroup(2, [])
    path = next((path for _, names, path in lines if controller in names.split(",")), None)
    mount = next((folder for folder in mounts if controller in folder.name.split(",")), None)
    if path is not None and mount is not None:
        return Cgroup(1, _folders(mount, path))
    if (root / "cgroup.controllers").exists():
        return Cgroup(2, _folders(root, next((path for number, _, path in lines if number == "0"), "/")))
    return Cgroup(2, [])


def cpu_limit(cgroup: Cgroup) -> float | None:
    """Return the CPUs that the tightest quota on the way up allows; None: no quota."""
    limits = [limit for folder in cgroup.folders if (limit := _quota(cgroup.version, folder)) is not None]
    return min(limits, default=None)


def memory_limit_b(cgroup: Cgroup) -> int | None:
    """Return the bytes that the tightest limit on the way up allows; None: no limit."""
    name = "memory.limit_in_bytes" if cgroup.version == 1 else "memory.max"
    words = [_read(folder / name) for folder in cgroup.folders]
    return min((int(word) for word in words if word.isdigit() and int(word) < NO_MEMORY_LIMIT_B), default=None)


def throttling_file(root: Path = CGROUP_ROOT, proc: Path = PROC) -> Path | Reason:
    """Return `cpu.stat` of the nearest group with a CPU quota, without one of the process's own; or why none counts."""
    group = locate("cpu", root, proc)
    if not group.folders:
        return reason("no_cpu_controller", root=str(root))
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


def open_edges(_cpus: Sequence[int], root: Path = CGROUP_ROOT, proc: Path = PROC) -> list[EdgeSource]:
    """Open throttled time and throttled periods of the group that holds the quota."""
    file = throttling_file(root, proc)
    report = partial(
        SensorReport,
        quantity="throttling",
        scope="control group with the nearest CPU quota, all its processes",
        source=str(root if isinstance(file, Reason) else file),
        status="measured",
        counter=True,
    )
    reports = [report(name="cgroup.throttled_ns", unit="ns"), report(name="cgroup.throttled_periods", unit="1")]
    return [EdgeSource(reports, file) if isinstance(file, Reason) else counters_in(file, throttling, reports)]


def _folders(mount: Path, path: str) -> list[Path]:
    folder = mount / path.lstrip("/")
    if ".." in folder.parts or not folder.is_dir():
        return [mount]
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(mount))]


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
