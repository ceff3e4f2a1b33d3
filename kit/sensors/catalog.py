"""Every sensor of this machine, the ones that cannot be read here included."""

from __future__ import annotations

import os
from collections.abc import Callable

from kit.profile.sensor import SensorReport
from kit.sensors import frequency, machine_cpu, nvml, process_tree, rapl, throttling, tpu
from kit.sensors.protocol import Sensor
from kit.sensors.source import Unavailable


def open_all(pid: int, excluded_pid: int | None = None) -> list[Sensor]:
    """Open every source for the process `pid`, leaving `excluded_pid` out of its tree. Never raises."""
    sources: list[tuple[str, str, Callable[[], list[Sensor]]]] = [
        ("cpu.process_tree", "utilization", lambda: process_tree.open_all(pid, excluded_pid)),
        ("cpu.machine", "utilization", machine_cpu.open_all),
        ("cpu.frequency", "frequency", frequency.open_all),
        ("cgroup.throttling", "throttling", lambda: throttling.open_all(pid)),
        ("rapl.energy", "energy", rapl.open_all),
        ("nvml.energy", "energy", nvml.open_all),
        ("tpu.energy", "energy", tpu.open_all),
    ]
    return [sensor for name, quantity, source in sources for sensor in _guarded(name, quantity, source)]


def probe_all() -> list[SensorReport]:
    """What each sensor says of itself here, in the order of `open_all`. Never raises."""
    sensors = open_all(os.getpid())
    try:
        return [sensor.probe() for sensor in sensors]
    finally:
        for sensor in sensors:
            sensor.close()


def _guarded(name: str, quantity: str, source: Callable[[], list[Sensor]]) -> list[Sensor]:
    """A driver can fail in ways nobody listed: that costs one source, not the launch."""
    try:
        return source()
    except Exception as error:
        reason = f"opening it failed: {type(error).__name__}: {error}"
        return [Unavailable(name, quantity, "", "", name, reason=reason)]
