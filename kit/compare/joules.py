"""Joules of a launch: of the sensors that together are its cell's device, gross and less idle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kit.devices import DEVICES
from kit.profile.cell import Cell
from kit.profile.instruments import Energy, EnergyKind
from kit.profile.schema import Launch

HOST = "cpu"


class LaunchEnergy(NamedTuple):
    """What a launch's device drew while it trained or inferred; watts are means over the block."""

    entries: list[Energy]
    power_w: float
    block_ns: int
    samples: int
    error_fraction: float | None  # null: not recorded
    idle_w: float | None
    net_error_w: float | None  # of power less idle
    with_host_w: float | None  # of an accelerator and of the host's packages, where both answered

    @property
    def joules_j(self) -> float:
        """A sensor's window is a little shorter than the block: its mean power is taken for the whole."""
        return self.power_w * self.block_ns / 1e9


def device_entries(cell: Cell, entries: Iterable[Energy]) -> list[Energy]:
    """Return the entries that together are the cell's device, with their joules or why there are none.

    Those of its best source, whether that gave any or not; an external meter's, where somebody gave one, are of the
    whole machine and go before all.
    """
    listed, device = list(entries), DEVICES.get(cell.device)  # a profile may be of a kit that has another kind
    metered = [energy for energy in listed if energy.tier == "external_meter"]
    if any(energy.joules_j for energy in metered):
        return metered
    names = device.joule_sensors_among(energy.sensor for energy in listed) if device else []
    whole = [energy for energy in listed if energy.sensor in names]
    is_whole = bool(whole) and (cell.device == HOST or len(whole) == cell.devices)
    return whole if is_whole else metered


def device_power_w(entries: Sequence[Energy]) -> float | None:
    """Return the mean power of entries that together are a device; null where one of them gave none."""
    pairs = [(energy.joules_j or 0.0, energy.window_ns or 0) for energy in entries]
    if not pairs or any(joules_j <= 0 or window_ns <= 0 for joules_j, window_ns in pairs):
        return None
    return sum(joules_j / window_ns * 1e9 for joules_j, window_ns in pairs)


def launch_entries(cell: Cell, launch: Launch, part: EnergyKind | None = None) -> list[Energy]:
    """Return the device's entries over a part of a launch: by default its long block, or a fit's own."""
    kind = part or ("fit" if cell.task == "fit" else "steady")
    return device_entries(
        cell,
        [
            energy
            for energy in launch.energy
            if energy.kind == kind
            and (energy.device_id is None or not launch.device_ids or energy.device_id in launch.device_ids)
        ],
    )


def launch_energy(cell: Cell, launch: Launch) -> LaunchEnergy | None:
    """Return what a launch's device drew in its long block, or in a fit's own; null where that is not known."""
    entries = launch_entries(cell, launch) if launch.energy else []
    power_w = device_power_w(entries)
    if power_w is None or entries[0].samples <= 0 or entries[0].block_ns <= 0:
        return None
    errors = [energy.error_fraction for energy in entries if energy.error_fraction is not None]
    error_fraction = max(errors) if len(errors) == len(entries) else None
    idle_w = error_w = with_host_w = None
    idles = [(energy.idle_before_w, energy.idle_after_w, energy.idle_error_fraction) for energy in entries]
    if error_fraction is not None and all(None not in idle for idle in idles):
        idles_w = [(before or 0.0, after or 0.0, fraction or 0.0) for before, after, fraction in idles]
        idle_w = sum((before + after) / 2 for before, after, _ in idles_w)
        drifts_w = sum(abs(before - after) / 2 + error * (before + after) / 2 for before, after, error in idles_w)
        error_w = drifts_w + error_fraction * power_w
    if cell.device != HOST and entries[0].tier != "external_meter":  # a meter's joules have everything in them
        alike = [energy for energy in launch.energy if energy.kind == entries[0].kind]
        names = DEVICES[HOST].joule_sensors_among(energy.sensor for energy in alike)
        host_w = device_power_w([energy for energy in alike if energy.sensor in names])
        with_host_w = None if host_w is None else power_w + host_w
    first = entries[0]
    return LaunchEnergy(entries, power_w, first.block_ns, first.samples, error_fraction, idle_w, error_w, with_host_w)
