"""CPU throttling by a control group's quota: the usual quiet reason why a container is slow."""

from __future__ import annotations

from pathlib import Path

from kit.profile.sensor import SensorReport
from kit.sensors import cgroup, names
from kit.sensors.held_file import HeldFile
from kit.sensors.protocol import Sensor
from kit.sensors.source import Readable, Unavailable

SCOPE = "control group of the process"


def open_all(pid: int, root: Path = cgroup.CGROUP_ROOT, proc: Path = cgroup.PROC) -> list[Sensor]:
    """Throttled time and how often, cumulative, from `cpu.stat` of the group that holds the quota."""
    group = cgroup.locate("cpu", pid, root, proc)
    if group is None:
        return _unavailable(str(root), f"no cpu controller is mounted under {root}: mount cgroup2 there to see it")
    file = cgroup.governing_folder(group) / "cpu.stat"
    try:
        held = HeldFile(file)
        found = cgroup.throttling(held.read())
    except OSError as error:
        return _unavailable(str(file), f"{file} is not readable: {error.strerror}")
    if found is None:
        held.close()
        return _unavailable(str(file), f"{file} counts no throttling: no CPU quota can apply to this group")
    return [
        Readable(_report(names.THROTTLED_TIME, "ns", file), lambda: _stopped_ns(held), (OSError, ValueError)),
        Readable(_report(names.THROTTLED_COUNT, "1", file), lambda: _stopped(held), (OSError, ValueError), held.close),
    ]


def _stopped_ns(held: HeldFile) -> float | None:
    found = cgroup.throttling(held.read())
    return None if found is None else float(found.stopped_ns)


def _stopped(held: HeldFile) -> float | None:
    found = cgroup.throttling(held.read())
    return None if found is None else float(found.stopped)


def _report(name: str, unit: str, file: Path) -> SensorReport:
    return SensorReport(
        name=name, quantity="throttling", unit=unit, scope=SCOPE, source=f"{file}; cumulative", status="measured"
    )


def _unavailable(source: str, reason: str) -> list[Sensor]:
    return [
        Unavailable(names.THROTTLED_TIME, "throttling", "ns", SCOPE, source, reason=reason),
        Unavailable(names.THROTTLED_COUNT, "throttling", "1", SCOPE, source, reason=reason),
    ]
