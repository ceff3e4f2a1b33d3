"""Rules on joules: how many readings they rest on, whether their sensors agree and move, what else is in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kit.audit import limits
from kit.audit.rule import Found, rule, says
from kit.audit.subject import MeasuredCell, NotApplicableError, NotMeasuredError, not_recorded
from kit.compare.blocks import SUSTAINED_LEAST_PCT, sustained_step
from kit.devices.catalog import DEVICES
from kit.profile.reason import Value, reason
from kit.profile.sensor import Energy

SENSOR_BROKEN = ("zero_power", "counter_stuck", "constant_power", "negative_power", "reading_not_finite")
# Names of sensors of a whole platform, and beginnings of those of its parts. It is unknown what a Cray's accelerator
# modules contain; its processors, one by one, are in cray.cpu.
PLATFORMS = ("rapl.psys", "cray.node.energy")
PARTS = ("rapl.package", "rapl.dram", "nvml.", "cray.cpu.energy")


class _Block(NamedTuple):
    """What one sensor gave of one launch's long block."""

    energy: Energy
    round: int
    power_w: float


def _entries(cell: MeasuredCell, *, figures: bool) -> Iterator[tuple[int, Energy]]:
    """Yield round and entry of each long block; with `figures` those that the cell's joules are made of.

    These are of the sensors that together are its device, or of a meter.
    """
    names: Sequence[str] = ()
    device = DEVICES.get(cell.cell.device)  # a profile may be of a kit that has another kind
    if figures and device is not None:
        sensors = (energy.sensor for launch in cell.launches.values() for energy in launch.energy)
        names = device.whole_of(dict.fromkeys(sensors))
    for launch in cell.launches.values():
        for energy in launch.energy:
            if energy.kind == "steady" and (not figures or energy.sensor in names or energy.tier == "external_meter"):
                yield launch.round, energy


def _blocks(cell: MeasuredCell, *, figures: bool) -> list[_Block]:
    """Return the long blocks that have joules; nothing gives joules back."""
    return [
        _Block(energy, number, (energy.joules_j or 0) / (energy.window_ns or 1) * 1e9)
        for number, energy in _entries(cell, figures=figures)
        if (energy.joules_j or 0) > 0 and (energy.window_ns or 0) > 0
    ]


def _figures(cell: MeasuredCell) -> list[_Block]:
    """Return the blocks that the cell's joules are made of; where there are none, nobody claims joules."""
    blocks = _blocks(cell, figures=True)
    if not blocks:
        raise NotApplicableError
    return blocks


def _refused(cell: MeasuredCell, codes: Sequence[str]) -> list[tuple[str, str]]:
    """Return sensor and code of each refusal of the device's joules that is one of these codes."""
    refusals = [
        (energy.sensor, energy.reason.code)
        for _, energy in _entries(cell, figures=True)
        if energy.reason is not None and energy.reason.code in codes
    ]
    if not refusals:
        _figures(cell)  # raises where there are no joules either
    return refusals


@rule("note")
@says("{who}: there are no joules.")
def no_joules(cell: MeasuredCell) -> Found | None:
    """Find cells without joules; the outcome is always *could not check*, with the reason."""
    if _blocks(cell, figures=True):
        return None
    for launch in cell.launches.values():
        for energy in launch.energy:
            if energy.reason is not None:
                raise NotMeasuredError(energy.reason)
    device = DEVICES.get(cell.cell.device)
    source = None if device is None else device.energy_source
    reports = cell.profile.sensors
    measuring = [report.name for report in reports if report.quantity in ("energy", "power")]
    sensors = [name for name in measuring if name.partition(".")[0] == source]
    answering = [report.name for report in reports if report.status != "unavailable"]
    if not sensors or (device is not None and device.whole_of(answering)):
        raise NotMeasuredError(reason("no_energy_asked_for"))
    raise cell.unread(*sensors)


@rule("warning", "longer_energy")
@says("{who}: the joules rest on {updates} fresh values of {sensor}; an error of 1 % needs {needed}.")
def few_updates(cell: MeasuredCell) -> Found | None:
    """Find joules that rest on too few fresh values of their sensor."""
    periods_ns = {sensor.name: sensor.update_period_ns for sensor in cell.profile.sensors}
    counts = []
    for energy, *_ in _figures(cell):
        if energy.updates is not None:
            # A sensor that says its period had more fresh values than were read.
            period_ns = periods_ns.get(energy.sensor)
            in_window = energy.window_ns // period_ns if energy.window_ns and period_ns else 0
            counts.append((max(energy.updates, in_window), energy.sensor))
    if not counts:
        raise not_recorded("updates")
    updates, sensor = min(counts)
    values: dict[str, Value] = {"sensor": sensor, "updates": updates, "needed": limits.UPDATES_NEEDED}
    return Found(values) if updates < limits.UPDATES_NEEDED else None


@rule("warning", "other_sensor")
@says("{who}: {sensor} gave no usable value (launches: {launches}): {how}.")
def sensor_broken(cell: MeasuredCell) -> Found | None:
    """Find energy and power sensors that report zero, a constant, a negative value, or no number."""
    refused = _refused(cell, SENSOR_BROKEN)
    if not refused:
        return None
    sensor, code = refused[0]
    return Found({"sensor": sensor, "how": code.replace("_", " "), "launches": len(refused)})


@rule("warning", "measure_again")
@says("{who}: {sensor} was reset during a block (launches: {launches}), so those joules are lost.")
def counter_reset(cell: MeasuredCell) -> Found | None:
    """Find energy counters that were reset during a block."""
    resets = _refused(cell, ("counter_reset",))
    return Found({"sensor": resets[0][0], "launches": len(resets)}) if resets else None


@rule("warning", "longer_blocks", on="accelerator", at_least=SUSTAINED_LEAST_PCT)
@says(
    "{who}: step time is {burst_ns} in short blocks (samples/s) and {sustained_ns} in the long energy block "
    "(joules): {difference_pct:+.1f} %."
)
def sustained_differs(cell: MeasuredCell) -> Found:
    """Find cells whose step time differs between short blocks and the long energy block."""
    steps = sustained_step(cell.launches.values())
    if steps is None:
        _figures(cell)  # raises where there are no joules
        raise not_recorded("steps")
    return Found({"difference_pct": steps.difference_pct, **steps._asdict()}, abs(steps.difference_pct))


@rule("warning", "external_meter", on="accelerator", at_least=limits.TIERS_APART_PCT)
@says("{who}: the energy counter and integrated power differ by {difference_pct:+.1f} %.")
def counter_against_integral(cell: MeasuredCell) -> Found:
    """Find GPUs whose energy counter disagrees with their integrated power."""
    powers_w: dict[tuple[int, str], dict[str | None, float]] = defaultdict(dict)  # by round and device, then by tier
    for energy, number, power_w in _blocks(cell, figures=False):
        if energy.device_id is not None:
            powers_w[number, energy.device_id][energy.tier] = power_w
    if not powers_w:
        raise NotApplicableError
    both = [tiers for tiers in powers_w.values() if {"device_counter", "integrated_power"} <= tiers.keys()]
    if not both:
        raise NotMeasuredError(reason("one_energy_source"))
    worst = max((100 * (tiers["device_counter"] / tiers["integrated_power"] - 1) for tiers in both), key=abs)
    return Found({"difference_pct": worst, "launches": len(both)}, value=abs(worst))


@rule("bad", "other_sensor", at_least=limits.PARTS_OVER_WHOLE)
@says("{who}: the parts drew {parts_w}, more than the {whole_w} of the whole ({whole}), so a sensor is wrong.")
def part_larger_than_whole(cell: MeasuredCell) -> Found:
    """Find machines whose parts drew more power than the whole, according to their sensors."""
    by_source, wholes = defaultdict[int, dict[str, float]](lambda: {"rapl": 0.0, "cray": 0.0, "nvml": 0.0}), {}
    for block in _blocks(cell, figures=False):
        energy = block.energy
        if energy.sensor in PLATFORMS or energy.tier == "external_meter":
            wholes[block.round] = block
        elif energy.tier in ("device_counter", "modelled") and energy.sensor.startswith(PARTS):
            by_source[block.round][energy.sensor.partition(".")[0]] += block.power_w
    # A Cray's controller and RAPL measure the same processors.
    parts_w = {number: max(watts["rapl"], watts["cray"]) + watts["nvml"] for number, watts in by_source.items()}
    ratios = {number: parts_w[number] / wholes[number].power_w for number in parts_w if number in wholes}
    if not ratios:
        raise NotMeasuredError(reason("one_energy_source")) if parts_w or wholes else NotApplicableError
    worst = max(ratios, key=lambda number: ratios[number])
    whole = wholes[worst]
    values: dict[str, Value] = {"parts_w": parts_w[worst], "whole_w": whole.power_w, "whole": whole.energy.sensor}
    return Found(values, value=ratios[worst])


@rule("note")
@says("{who}: {blocks} of {of_blocks} energy blocks lack idle power ({sensor}), so net joules are unknown.")
def no_idle(cell: MeasuredCell) -> Found | None:
    """Find joules without idle power, from which net joules cannot be computed."""
    entries = [block.energy for block in _figures(cell)]
    lacking = [energy for energy in entries if energy.idle_before_w is None and energy.idle_after_w is None]
    if not lacking:
        return None
    return Found({"sensor": lacking[0].sensor, "blocks": len(lacking), "of_blocks": len(entries)})


@rule("warning", "quiet_machine", at_least=limits.IDLE_MOVED_PCT)
@says(
    "{who}: idle power was {before_w} before the round and {after_w} after it ({sensor}; {gross_w} under load), so "
    "net joules are uncertain."
)
def idle_not_idle(cell: MeasuredCell) -> Found | None:
    """Find cells whose idle power differs before and after the round."""
    idles = [
        (block, block.energy.idle_before_w, block.energy.idle_after_w)
        for block in _figures(cell)
        if block.energy.idle_before_w is not None and block.energy.idle_after_w is not None
    ]
    if not idles:
        raise not_recorded("idle power")
    moved = [
        (100 * abs(before_w - after_w) / block.power_w, block, before_w, after_w)
        for block, before_w, after_w in idles
        # A GPU that nobody else computed on keeps its clocks up after its last process: that is no other program.
        if block.energy.idle_processes != 0 or max(before_w, after_w) > limits.CLOCKS_UP_RATIO * min(before_w, after_w)
    ]
    if not moved:
        return None
    moved_pct, block, before_w, after_w = max(moved, key=lambda each: each[0])
    values: dict[str, Value] = {"before_w": before_w, "after_w": after_w}
    values |= {"sensor": block.energy.sensor, "gross_w": block.power_w}
    return Found(values, moved_pct)


@rule("warning", "longer_energy_warmup", on="accelerator", at_least=limits.WARMING_C_PER_S)
@says(
    "{who}: the device's temperature changed by {slope_c_per_s:+.2f} °C per second while joules were measured "
    "({moved_c:.1f} °C in {block_s})."
)
def device_still_warming(cell: MeasuredCell) -> Found | None:
    """Find cells whose device still changed its temperature while energy was measured."""
    entries = [block.energy for block in _figures(cell)]
    slopes = [(energy.warming_c_per_s, energy) for energy in entries if energy.warming_c_per_s is not None]
    if not slopes:
        raise not_recorded("warming_c_per_s")
    slope, energy = max(slopes, key=lambda each: abs(each[0]))
    block_s = energy.block_ns / 1e9
    values = {"slope_c_per_s": slope, "moved_c": abs(slope) * energy.block_ns / 1e9, "block_s": block_s}
    return Found(values, value=abs(slope)) if values["moved_c"] > limits.WARMING_C else None


@rule("warning", "whole_machine")
@says(
    "{who}: the joules are the whole {scope}'s, but the worker had {cpus} of {of_cpus} CPUs; other programs took "
    "{contention_pct:.0f} % of all."
)
@says(
    "{who}: the joules include other programs, which took {contention_pct:.0f} % of the CPUs.",
    code="scope_shared",
)
def scope_larger_than_worker(cell: MeasuredCell) -> Found | None:
    """Find joules that include CPUs which the worker did not have, or work of other programs."""
    blocks = _figures(cell)
    if cell.cell.device != "cpu":
        return None  # joules of a shared GPU are refused
    threads, of_cpus, lost = cell.threads, cell.profile.identity.integer("cpu.cores_logical"), cell.lost
    if threads is None or of_cpus is None or lost is None:
        raise cell.unread("process.cpu_ns", "machine.busy_ns")
    values: dict[str, Value] = {"contention_pct": lost.contention_pct}
    if len(threads.cpus) < of_cpus:
        scope = "machine" if any(block.energy.tier == "external_meter" for block in blocks) else "package"
        values = {"cpus": len(threads.cpus), "of_cpus": of_cpus, **values, "scope": scope}
        return Found(values, lost.contention_pct)
    if lost.is_contended:
        return Found(values, lost.contention_pct, code="scope_shared", remedy=reason("quiet_machine"))
    return None


@rule("bad")
@says("{who}: some joules were measured and others modelled ({tiers}).")
def modelled_beside_measured(group: Sequence[MeasuredCell]) -> Found | None:
    """Find groups in which some joules were measured and others modelled."""
    tiers = {block.energy.tier for cell in group for block in _blocks(cell, figures=True)} - {None}
    if not tiers:
        raise NotApplicableError
    if "modelled" not in tiers or len(tiers) == 1:
        return None
    return Found({"tiers": ", ".join(sorted(str(tier).replace("_", " ") for tier in tiers))})
