"""Joules: of a launch, of the sensors that together are its cell's device, gross and less idle; and of a whole cell."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from kit.compare.runs import Sample
from kit.compare.table import LaunchRow, known_mean, showing_start
from kit.devices import DEVICES
from kit.profile.cell import Cell
from kit.profile.fields import Reason, Value
from kit.profile.instruments import Energy, EnergyKind

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

    Those of its best source, whether that gave any or not. Where somebody gave an external meter's log, they are the
    meter's, also where it gave none: joules of the machine beside those of a board would be two quantities in one
    column.
    """
    listed, device = list(entries), DEVICES.get(cell.device)  # a profile may be of a kit that has another kind
    if metered := [energy for energy in listed if energy.tier == "external_meter"]:
        return metered
    names = device.joule_sensors_among(energy.sensor for energy in listed) if device else []
    whole = [energy for energy in listed if energy.sensor in names]
    is_whole = bool(whole) and (cell.device == HOST or len(whole) == cell.devices)
    return whole if is_whole else []


def device_power_w(entries: Sequence[Energy]) -> float | None:
    """Return the mean power of entries that together are a device; null where one of them gave none."""
    pairs = [(energy.joules_j or 0.0, energy.window_ns or 0) for energy in entries]
    if not pairs or any(joules_j <= 0 or window_ns <= 0 for joules_j, window_ns in pairs):
        return None
    return sum(joules_j / window_ns * 1e9 for joules_j, window_ns in pairs)


def launch_entries(launch: LaunchRow, part: EnergyKind | None = None) -> list[Energy]:
    """Return the device's entries over a part of a launch: by default its long block, or a fit's own."""
    kind, ids = part or launch.cell.traits.energy, launch.record.device_ids
    return device_entries(
        launch.cell,
        [
            energy
            for energy in launch.energy
            if energy.kind == kind and (energy.device_id is None or not ids or energy.device_id in ids)
        ],
    )


def launch_energy(launch: LaunchRow) -> LaunchEnergy | None:
    """Return what a launch's device drew in its long block, or in a fit's own; null where that is not known."""
    cell, entries = launch.cell, launch_entries(launch) if launch.energy else []
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


Drawn = Callable[[list[LaunchEnergy], Sample], Value | None]


def energies(sample: Sample) -> list[tuple[LaunchRow, LaunchEnergy]]:
    """Return what each launch of a cell's figures drew, where that is known; nothing of a cell without a number."""

    def compute() -> list[tuple[LaunchRow, LaunchEnergy]]:
        finished = [launch for launch in sample.figures if launch.record.failure is None] if sample.good else []
        drawn = [(launch, launch_energy(launch)) for launch in finished if launch.energy]
        return [(launch, energy) for launch, energy in drawn if energy is not None]

    return sample.once("energies", compute)


def refusals(sample: Sample) -> list[tuple[str, Reason]]:
    """Return sensor and reason of each refusal that left a cell without joules; nothing of one that has some."""
    if energies(sample):
        return []
    entries = (entry for launch in sample.launches for entry in launch_entries(launch))
    return [(entry.sensor, entry.reason) for entry in entries if entry.reason is not None]


def sample_joules(_sample: Sample, launch: LaunchRow) -> float | None:
    """Return what a launch's device drew for a sample."""
    energy = launch_energy(launch)
    return None if energy is None else energy.joules_j / energy.samples


def step_joules(sample: Sample, launch: LaunchRow) -> float | None:
    """Return what a launch's device drew for a step."""
    per_sample_j = sample_joules(sample, launch)
    return None if per_sample_j is None else per_sample_j * sample.cell.batch


def tier(_sample: Sample, launch: LaunchRow) -> str | None:
    """Return how far its joules can be relied on, and what a log covers: only like joules are compared."""
    first = launch_entries(launch)[0]
    return f"{first.tier} {first.sensor}" if first.tier == "external_meter" else first.tier


def _raw_joules(drawn: Sequence[LaunchEnergy], _sample: Sample) -> float:
    return sum(energy.joules_j for energy in drawn) / sum(energy.samples for energy in drawn)


def _mean_j(drawn: Sequence[LaunchEnergy], power_w: Callable[[LaunchEnergy], float | None]) -> float | None:
    """Return joules a sample of a power, over the launches of which it is known."""
    powers_w = [(watts, energy) for energy in drawn if (watts := power_w(energy)) is not None]
    joules_j = sum(watts * energy.block_ns for watts, energy in powers_w) / 1e9
    return joules_j / sum(energy.samples for _, energy in powers_w) if powers_w else None


def _net_w(energy: LaunchEnergy) -> float | None:
    return None if energy.idle_w is None else energy.power_w - energy.idle_w


def _net_error(drawn: Sequence[LaunchEnergy], _sample: Sample) -> float | None:
    """Return the error of net joules a sample: the launches' mean error, as it has one cause in all of them."""
    errors_w = [energy.net_error_w or 0.0 for energy in drawn if energy.idle_w is not None]
    return _mean_j(drawn, lambda energy: None if energy.idle_w is None else statistics.fmean(errors_w))


def _delay_product(drawn: Sequence[LaunchEnergy], sample: Sample) -> float:
    step_s = sum(energy.block_ns for energy in drawn) / 1e9 / sum(energy.samples for energy in drawn)
    return _raw_joules(drawn, sample) * step_s * sample.cell.batch**2


def _highest_w(drawn: Sequence[LaunchEnergy], _sample: Sample) -> float | None:
    """Return the highest power between two readings, of launches all of whose sensors show it."""
    peaks_w = [[entry.power_max_w for entry in energy.entries] for energy in drawn]
    return max((sum(filter(None, sensors_w)) for sensors_w in peaks_w if None not in sensors_w), default=None)


def _compile_j(_drawn: object, sample: Sample) -> float | None:
    """Return the mean joules from the build to the first step done, idle included."""
    joules_j = []
    for launch in showing_start(launch for launch in sample.figures if launch.record.failure is None):
        entries = launch_entries(launch, "compile")
        if (power_w := device_power_w(entries)) is not None:
            joules_j.append(power_w * entries[0].block_ns / 1e9)
    return known_mean(joules_j)


def _fit_j(drawn: Sequence[LaunchEnergy], sample: Sample, *, per_epoch: bool) -> float | None:
    """Return joules of a whole fit, or of an epoch of it: of all its updates, each as of those that were measured."""
    step_j = _raw_joules(drawn, sample) * sample.cell.batch
    measured = [fit for launch, _ in energies(sample) if (fit := launch.record.fit) is not None]
    return known_mean(step_j * fit.all_updates / (fit.epochs if per_epoch else 1) for fit in measured)


# What is read of all that a cell's launches drew: name behind "energy_", title and unit of its column, and how.
DRAWN: tuple[tuple[str, str, str, Drawn], ...] = (
    ("sensors", "", "", lambda drawn, _: " ".join(energy.sensor for energy in drawn[0].entries)),
    ("tier", "", "", lambda drawn, _: drawn[0].entries[0].tier),
    ("method", "", "", lambda drawn, _: drawn[0].entries[0].method),
    ("launches", "", "", lambda drawn, _: len(drawn)),
    ("block_ns", "", "", lambda drawn, _: sum(energy.block_ns for energy in drawn) / len(drawn)),
    ("error_share", "", "", lambda drawn, _: max(
        (energy.error_fraction for energy in drawn if energy.error_fraction is not None), default=None)),
    ("align_error_ns", "", "", lambda drawn, _: drawn[0].entries[0].align_error_ns),
    ("raw_per_sample_j", "", "", _raw_joules),
    ("with_package_per_sample_j", "device + package", "per_1k",
     lambda drawn, _: _mean_j(drawn, lambda energy: energy.with_host_w)),
    ("per_step_j", "J/step", "j", lambda drawn, sample: _raw_joules(drawn, sample) * sample.cell.batch),
    ("power_w", "W", "number", lambda drawn, _: sum(energy.joules_j for energy in drawn)
     / sum(energy.block_ns for energy in drawn) * 1e9),
    ("power_max_w", "peak W", "number", _highest_w),
    ("delay_product_js", "J·s/step", "digits", _delay_product),
    ("idle_w", "idle W", "number", lambda drawn, _: known_mean(energy.idle_w for energy in drawn)),
    ("net_per_sample_j", "", "", lambda drawn, _: _mean_j(drawn, _net_w)),
    ("net_error_j", "", "", _net_error),
    ("compile_j", "compile J", "number", _compile_j),
    ("epoch_j", "J/epoch", "number", partial(_fit_j, per_epoch=True)),
    ("fit_j", "J/fit", "number", partial(_fit_j, per_epoch=False)),
)  # fmt: skip


def drawn(read: Drawn) -> Callable[[Sample], Value | None]:
    """Return how a value is read of what a cell's launches drew; null: nothing is known of that."""
    return lambda sample: read([energy for _, energy in energies(sample)], sample) if energies(sample) else None
