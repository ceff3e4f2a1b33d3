"""Joules per sample of one launch, from the sensors whose scopes may be added.

joules per sample = energy / window * steady phase / samples of the steady phase

A sensor's window runs from one update of its counter to another, so it is a little shorter than the phase: its mean
power is taken for the whole.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kit.profile.cell import Cell, Device
from kit.profile.launch import Energy, Launch

# Per device, the sensors that together are the device. RAPL's dram, psys, core and uncore domains lie beside, around or
# within a package: adding them would count energy twice. Of a GPU, the board's counter already holds everything.
# Beside them the entries that stand for sensors that could not be opened, which carry the reason.
WHOLE_DEVICE: dict[Device, re.Pattern[str]] = {
    "cpu": re.compile(r"rapl\.(package-\d+(-die-\d+)?|intel-rapl:\d+|energy)|sampler"),
    "gpu": re.compile(r"nvml\.(\d+\.)?energy|sampler"),
    "tpu": re.compile(r"tpu\.(\d+\.)?energy|sampler"),
}
DESCRIPTION: dict[Device, str] = {
    "cpu": "CPU package energy sensor (RAPL)",
    "gpu": "GPU board energy counter (NVML)",
    "tpu": "TPU energy sensor",
}


class JoulesPerSample(NamedTuple):
    """A number, or why there is none."""

    joules_per_sample_j: float | None
    reason: str | None


def joules_per_sample(cell: Cell, launch: Launch) -> JoulesPerSample:
    """Energy of the cell's device over the steady phase, divided by the samples of that phase."""
    sensors = [energy for energy in launch.energy if WHOLE_DEVICE[cell.device].fullmatch(energy.sensor)]
    if not sensors:
        return JoulesPerSample(None, f"no {DESCRIPTION[cell.device]} answered")
    powers_w = [_mean_power_w(energy) for energy in sensors]
    for energy, power_w in zip(sensors, powers_w, strict=True):
        if power_w is None:
            return JoulesPerSample(None, energy.reason or f"{energy.sensor} measured no energy over the steady phase")
    if cell.device != "cpu" and len(sensors) != cell.devices:
        return JoulesPerSample(
            None, f"{len(sensors)} {cell.device} energy counters for {cell.devices} used: which is whose is not known"
        )
    steady_ns = next((phase.duration_ns for phase in launch.phases if phase.name == "steady"), 0)
    samples = (launch.steps - launch.warmup_steps) * cell.batch
    if samples <= 0 or steady_ns <= 0:
        return JoulesPerSample(None, "no steps in the steady phase")
    return JoulesPerSample(sum(power for power in powers_w if power is not None) * steady_ns / 1e9 / samples, None)


def _mean_power_w(energy: Energy) -> float | None:
    """Null for a counter that stood still: that is a broken reading, not free work."""
    if not energy.joules_j or not energy.window_ns or energy.joules_j < 0:
        return None
    return energy.joules_j / (energy.window_ns / 1e9)
