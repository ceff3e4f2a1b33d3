"""Joules of a cell: of the sensors that together are its device, gross and net, and between members round by round."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from kit.compare.rows import EnergyNumbers
from kit.devices.catalog import DEVICES
from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.reason import Reason
from kit.profile.schema import CellResult
from kit.profile.sensor import Energy, EnergyKind
from kit.stats.verdict import SMALLEST_DIFFERENCE, Versus, judge_family

HOST = "cpu"


class LaunchEnergy(NamedTuple):
    """What a launch's device drew while it trained or inferred; watts are means over the block."""

    entries: list[Energy]
    power_w: float
    block_ns: int
    samples: int
    error_share: float | None  # null: not recorded
    idle_w: float | None
    net_error_w: float | None  # of power less idle

    @property
    def joules_j(self) -> float:
        """A sensor's window is a little shorter than the block: its mean power is taken for the whole."""
        return self.power_w * self.block_ns / 1e9

    @property
    def per_sample_j(self) -> float:
        """Joules a sample, idle included."""
        return self.joules_j / self.samples


def device_entries(cell: Cell, entries: Iterable[Energy]) -> list[Energy]:
    """Return the entries that together are the cell's device, with their joules or why there are none.

    Those of its best source, whether that gave any or not; an external meter's, where somebody gave one, are of the
    whole machine and go before all.
    """
    listed, device = list(entries), DEVICES.get(cell.device)  # a profile may be of a kit that has another kind
    metered = [energy for energy in listed if energy.tier == "external_meter"]
    if any(energy.joules_j for energy in metered):
        return metered
    names = device.whole_of(energy.sensor for energy in listed) if device else []
    whole = [energy for energy in listed if energy.sensor in names]
    is_whole = bool(whole) and (cell.device == "cpu" or len(whole) == cell.devices)
    return whole if is_whole else metered


def device_power_w(entries: Sequence[Energy]) -> float | None:
    """Return the mean power of entries that together are a device; null where one of them gave none."""
    pairs = [(energy.joules_j or 0.0, energy.window_ns or 0) for energy in entries]
    if not pairs or any(joules_j <= 0 or window_ns <= 0 for joules_j, window_ns in pairs):
        return None
    return sum(joules_j / window_ns * 1e9 for joules_j, window_ns in pairs)


def launch_energy(cell: Cell, launch: Launch) -> LaunchEnergy | None:
    """Return what a launch's device drew in its long block, or in a fit's own; null where that is not known."""
    entries = _of_launch(cell, launch, "fit" if cell.task == "fit" else "steady")
    power_w = device_power_w(entries)
    if power_w is None or entries[0].samples <= 0 or entries[0].block_ns <= 0:
        return None
    errors = [energy.error_fraction for energy in entries if energy.error_fraction is not None]
    error_share = max(errors) if len(errors) == len(entries) else None
    idle_w = error_w = None
    idles = [(energy.idle_before_w, energy.idle_after_w, energy.idle_error_fraction) for energy in entries]
    if error_share is not None and all(None not in idle for idle in idles):
        known = [(before or 0.0, after or 0.0, share or 0.0) for before, after, share in idles]
        idle_w = sum((before + after) / 2 for before, after, _ in known)
        drifts_w = sum(abs(before - after) / 2 + share * (before + after) / 2 for before, after, share in known)
        error_w = drifts_w + error_share * power_w
    return LaunchEnergy(entries, power_w, entries[0].block_ns, entries[0].samples, error_share, idle_w, error_w)


def energy_numbers(cell: Cell, launches: Sequence[Launch]) -> EnergyNumbers | None:
    """Return what the launches of a cell drew: all of their joules over all of their samples; null: none is known."""
    known = [(launch, of) for launch in launches if (of := launch_energy(cell, launch)) is not None]
    if not known:
        return None
    energies = [of for _, of in known]
    samples, block_ns = sum(of.samples for of in energies), sum(of.block_ns for of in energies)
    per_sample_j, batch = sum(of.joules_j for of in energies) / samples, cell.batch
    errors = [of.error_share for of in energies if of.error_share is not None]
    nets = [of for of in energies if of.idle_w is not None]
    net_ns, net_samples = sum(of.block_ns for of in nets), sum(of.samples for of in nets)
    peaks_w = [_highest_w(of.entries) for of in energies]
    fits = [launch.fit for launch, _ in known if launch.fit is not None]
    entries = energies[0].entries
    return EnergyNumbers(
        sensors=[energy.sensor for energy in entries],
        tier=entries[0].tier,
        method=entries[0].method,
        launches=len(known),
        block_ns=block_ns / len(known),
        error_share=max(errors) if errors else None,
        align_error_ns=entries[0].align_error_ns,
        per_sample_j=per_sample_j,
        with_package_per_sample_j=_with_package_per_sample_j(cell, known),
        per_step_j=per_sample_j * batch,
        power_w=per_sample_j * samples / block_ns * 1e9,
        power_max_w=max((peak_w for peak_w in peaks_w if peak_w is not None), default=None),
        delay_product_js=per_sample_j * batch * (block_ns / 1e9 / samples * batch),
        idle_w=fmean(of.idle_w or 0.0 for of in nets) if nets else None,
        net_per_sample_j=sum((of.power_w - (of.idle_w or 0)) * of.block_ns for of in nets) / 1e9 / net_samples
        if nets
        else None,
        net_error_j=fmean(of.net_error_w or 0.0 for of in nets) * net_ns / 1e9 / net_samples if nets else None,
        compile_j=_compile_j(cell, launches),
        epoch_j=fmean(per_sample_j * batch * fit.all_updates / fit.epochs for fit in fits) if fits else None,
        fit_j=fmean(per_sample_j * batch * fit.all_updates for fit in fits) if fits else None,
    )


def energy_verdicts(results: Mapping[str, CellResult], baseline: str) -> dict[str, Versus]:
    """Return joules a sample of each cell of a group against the baseline's: paired over rounds, as times are judged.

    Only figures of one tier are set against each other, and members of one part of a group.
    """
    drawn = {
        key: {
            (launch.group, launch.round, of.entries[0].tier): of.per_sample_j
            for launch in result.launches
            if launch.failure is None and (of := launch_energy(result.cell, launch)) is not None
        }
        for key, result in results.items()
    }
    base = drawn.pop(baseline, {})
    common = {key: sorted(of_cell.keys() & base.keys()) for key, of_cell in drawn.items()}
    logs = {
        key: [math.log(drawn[key][place] / base[place]) for place in places] for key, places in common.items() if places
    }
    return dict(zip(logs, judge_family(list(logs.values()), SMALLEST_DIFFERENCE), strict=True))


def first_refusal(results: Iterable[CellResult]) -> Reason | None:
    """Return why the first launch whose sensors gave no joules has none."""
    for result in results:
        for launch in result.launches:
            entries = _of_launch(result.cell, launch, "fit" if result.cell.task == "fit" else "steady")
            why = next((energy.reason for energy in entries if energy.reason is not None), None)
            if why is not None:
                return why
    return None


def _with_package_per_sample_j(cell: Cell, known: Sequence[tuple[Launch, LaunchEnergy]]) -> float | None:
    """Return the joules of an accelerator and of the host's packages over the launches in which both answered."""
    if cell.device == HOST or any(of.entries[0].tier == "external_meter" for _, of in known):
        return None  # of a CPU they are the packages'; a meter's have everything in them
    host, both = DEVICES[HOST], list[tuple[float, LaunchEnergy]]()
    for launch, of in known:
        kind = of.entries[0].kind
        names = host.whole_of(energy.sensor for energy in launch.energy if energy.kind == kind)
        host_w = device_power_w([energy for energy in launch.energy if energy.kind == kind and energy.sensor in names])
        if host_w is not None:
            both.append((host_w, of))
    joules = sum((of.power_w + host_w) * of.block_ns / 1e9 for host_w, of in both)
    return joules / sum(of.samples for _, of in both) if both else None


def _of_launch(cell: Cell, launch: Launch, of: EnergyKind) -> list[Energy]:
    of_boards = [
        energy
        for energy in launch.energy
        if energy.kind == of
        and (energy.device_id is None or not launch.device_ids or energy.device_id in launch.device_ids)
    ]
    return device_entries(cell, of_boards)


def _highest_w(entries: Sequence[Energy]) -> float | None:
    peaks_w = [energy.power_max_w for energy in entries if energy.power_max_w is not None]
    return sum(peaks_w) if len(peaks_w) == len(entries) else None


def _compile_j(cell: Cell, launches: Iterable[Launch]) -> float | None:
    """Return the mean joules from the build to the first step done, idle included."""
    known = []
    for launch in launches:
        entries = _of_launch(cell, launch, "compile")
        power_w = device_power_w(entries)
        if power_w is not None:
            known.append(power_w * entries[0].block_ns / 1e9)
    return fmean(known) if known else None
