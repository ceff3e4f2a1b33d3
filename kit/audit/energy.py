"""Rules on joules: how many readings they rest on, whether their sensors agree and move, what else is in them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from kit.audit.rule import Found, rule, says
from kit.audit.subject import MeasuredCell, NotApplicableError, NotMeasuredError, not_recorded
from kit.compare.table import SUSTAINED_LEAST_PCT, sustained_step
from kit.devices import DEVICES
from kit.profile.fields import Reason, Value, reason
from kit.profile.instruments import Energy

# An unaligned end costs up to one update: of a hundred, 1 %.
UPDATES_NEEDED = 100
# Counters and integrals of one GPU agree to 1 to 3 %.
TIERS_APART_PCT = 5.0
# A package and the platform around it are read at other moments: a few percent are no contradiction.
PARTS_OVER_WHOLE = 1.05
# A percentage of what the cell draws.
IDLE_MOVED_PCT = 10.0
# A GPU keeps its clocks up for some time after its last process has ended: an H100 draws 72 W idle, 106 W then, and
# 122 W with a process that does nothing.
CLOCKS_UP_RATIO = 2.0
# Leakage grows with heat: a GPU that warms faster draws some tenths of a percent more within a block. NVML gives whole
# degrees: one that changes within the block looks like a slope of up to 1.5 degrees over it.
WARMING_C_PER_S, WARMING_C = 0.1, 1.5
# What is advised instead of a block that was too short; a block of a second says nothing of what would be enough.
LONGER_TIMES, LONGER_LEAST_S = 2.0, 5.0
SENSOR_BROKEN = ("zero_power", "counter_stuck", "constant_power", "negative_power", "reading_not_finite")
# Names of sensors of a whole platform, and beginnings of those of its parts. It is unknown what a Cray's accelerator
# modules contain; its processors, one by one, are in cray.cpu.
PLATFORMS = ("rapl.psys", "cray.node.energy")
PARTS = ("rapl.package", "rapl.dram", "nvml.", "cray.cpu.energy")


class _Block(NamedTuple):
    """What one sensor gave of one launch's long block."""

    energy: Energy
    round: int
    power_w: float  # 0: it gave no joules; nothing gives joules back
    is_figure: bool  # of a meter, or without one of the cell's device: its joules are made of these


def _whole_of(cell: MeasuredCell, names: Iterable[str]) -> list[str]:
    """Return those sensors that together are the cell's device; a profile may be of a kit that has another kind."""
    return DEVICES[cell.cell.device].joule_sensors_among(dict.fromkeys(names)) if cell.cell.device in DEVICES else []


def _blocks(cell: MeasuredCell) -> list[_Block]:
    """Return what each sensor gave of each long block."""

    def read() -> list[_Block]:
        entries = [(launch.round, energy) for launch in cell.launches.values() for energy in launch.energy]
        names = _whole_of(cell, (energy.sensor for _, energy in entries)) if entries else []
        is_metered = any(energy.tier == "external_meter" for _, energy in entries)
        return [
            _Block(
                energy,
                number,
                max(0.0, (energy.joules_j or 0) / window_ns * 1e9) if (window_ns := energy.window_ns or 0) > 0 else 0.0,
                energy.tier == "external_meter" if is_metered else energy.sensor in names,
            )
            for number, energy in entries
            if energy.kind == "steady"
        ]

    return cell.sample.once((cell.group, _blocks), read)


def _figures(*cells: MeasuredCell) -> list[_Block]:
    """Return the blocks that the joules of cells are made of; where there are none, nobody claims joules."""
    blocks = [block for cell in cells for block in _blocks(cell) if block.is_figure and block.power_w > 0]
    if not blocks:
        raise NotApplicableError
    return blocks


def _refused(cell: MeasuredCell, codes: Sequence[str]) -> list[tuple[str, str]]:
    """Return sensor and code of each refusal of the device's joules that is one of these codes."""
    figures = [block.energy for block in _blocks(cell) if block.is_figure]
    reasons = ((energy.sensor, energy.reason.code) for energy in figures if energy.reason is not None)
    refusals = [(sensor, code) for sensor, code in reasons if code in codes]
    if not refusals:
        _figures(cell)  # raises where there are no joules either
    return refusals


@rule("note")
@says("{who}: there are no joules.")
def no_joules(cell: MeasuredCell) -> Found | None:
    """Find cells without joules; the outcome is always *could not check*, with the reason."""
    if any(block.is_figure and block.power_w > 0 for block in _blocks(cell)):
        return None
    figures = [block.energy for block in _blocks(cell) if block.is_figure]
    entries = [*figures, *(energy for launch in cell.launches.values() for energy in launch.energy)]
    if (why := next((energy.reason for energy in entries if energy.reason is not None), None)) is not None:
        raise NotMeasuredError(why)
    reports = [report for report in cell.run.profile.sensors if report.quantity in ("energy", "power")]
    source = DEVICES[cell.cell.device].energy_source if cell.cell.device in DEVICES else None
    sensors = [report.name for report in reports if report.name.partition(".")[0] == source]
    if not sensors or _whole_of(cell, (report.name for report in reports if report.status != "unavailable")):
        raise NotMeasuredError(reason("no_energy_asked_for"))
    raise cell.unread(*sensors)


@rule("warning")
@says("{who}: the joules rest on {updates} fresh values of {sensor}; an error of 1 % needs {needed}.")
def few_updates(cell: MeasuredCell) -> Found | None:
    """Find joules that rest on too few fresh values of their sensor."""
    periods_ns = {sensor.name: sensor.update_period_ns for sensor in cell.run.profile.sensors}
    counts = [
        # A sensor that says its period had more fresh values than were read.
        (max(energy.updates, (energy.window_ns or 0) // (periods_ns.get(energy.sensor) or math.inf)), energy.sensor)
        for energy, *_ in _figures(cell)
        if energy.updates is not None
    ]
    if not counts:
        raise not_recorded("updates")
    updates, sensor = min(counts)
    values: dict[str, Value] = {"sensor": sensor, "updates": updates, "needed": UPDATES_NEEDED}
    return Found(values, remedy=_longer(cell, "longer_energy")) if updates < UPDATES_NEEDED else None


def _longer(cell: MeasuredCell, code: str) -> Reason:
    """Return the remedy to measure energy for twice as long as in the longest block."""
    longest_ns = max((energy.block_ns for record in cell.records for energy in record.energy), default=0)
    return reason(code, seconds=LONGER_TIMES * max(longest_ns / 1e9, LONGER_LEAST_S))


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


@rule("warning", "external_meter", on="accelerator", at_least=TIERS_APART_PCT)
@says("{who}: the energy counter and integrated power differ by {difference_pct:+.1f} %.")
def counter_against_integral(cell: MeasuredCell) -> Found:
    """Find GPUs whose energy counter disagrees with their integrated power."""
    powers_w: defaultdict[object, dict[str | None, float]] = defaultdict(dict)  # round and device -> tier
    for block in _blocks(cell):
        if block.energy.device_id is not None and block.power_w > 0:
            powers_w[block.round, block.energy.device_id][block.energy.tier] = block.power_w
    if not powers_w:
        raise NotApplicableError
    names = ("device_counter", "integrated_power")
    both = [[tiers[name] for name in names] for tiers in powers_w.values() if tiers.keys() >= {*names}]
    if not both:
        raise NotMeasuredError(reason("one_energy_source"))
    worst = max((100 * (counter_w / integral_w - 1) for counter_w, integral_w in both), key=abs)
    return Found({"difference_pct": worst, "launches": len(both)}, value=abs(worst))


@rule("bad", "other_sensor", at_least=PARTS_OVER_WHOLE)
@says("{who}: the parts drew {parts_w}, more than the {whole_w} of the whole ({whole}), so a sensor is wrong.")
def part_larger_than_whole(cell: MeasuredCell) -> Found:
    """Find machines whose parts drew more power than the whole, according to their sensors."""
    by_source = defaultdict[int, dict[str, float]](lambda: {"rapl": 0.0, "cray": 0.0, "nvml": 0.0})  # by round
    wholes: dict[int, _Block] = {}
    for block in (block for block in _blocks(cell) if block.power_w > 0):
        energy = block.energy
        if energy.sensor in PLATFORMS or energy.tier == "external_meter":
            wholes[block.round] = block
        elif energy.tier in ("device_counter", "modelled") and energy.sensor.startswith(PARTS):
            by_source[block.round][energy.sensor.partition(".")[0]] += block.power_w
    # A Cray's controller and RAPL measure the same processors.
    parts_w = {number: max(watts["rapl"], watts["cray"]) + watts["nvml"] for number, watts in by_source.items()}
    ratios = [(parts_w[number] / wholes[number].power_w, number) for number in parts_w if number in wholes]
    if not ratios:
        raise NotMeasuredError(reason("one_energy_source")) if parts_w or wholes else NotApplicableError
    ratio, number = max(ratios)
    whole = wholes[number]
    values: dict[str, Value] = {"parts_w": parts_w[number], "whole_w": whole.power_w, "whole": whole.energy.sensor}
    return Found(values, value=ratio)


@rule("note")
@says("{who}: {blocks} of {of_blocks} energy blocks lack idle power ({sensor}), so net joules are unknown.")
def no_idle(cell: MeasuredCell) -> Found | None:
    """Find joules without idle power, from which net joules cannot be computed."""
    entries = [block.energy for block in _figures(cell)]
    lacking = [energy for energy in entries if energy.idle_before_w is None and energy.idle_after_w is None]
    counts = {"blocks": len(lacking), "of_blocks": len(entries)}
    return Found({"sensor": lacking[0].sensor, **counts}) if lacking else None


@rule("warning", "quiet_machine", at_least=IDLE_MOVED_PCT)
@says(
    "{who}: idle power was {before_w} before the round and {after_w} after it ({sensor}; {gross_w} under load), so "
    "net joules are uncertain."
)
def idle_not_idle(cell: MeasuredCell) -> Found | None:
    """Find cells whose idle power differs before and after the round."""
    idles = [(block, block.energy.idle_before_w, block.energy.idle_after_w) for block in _figures(cell)]
    known = [(block, before, after) for block, before, after in idles if before is not None and after is not None]
    if not known:
        raise not_recorded("idle power")
    moved = [
        (100 * abs(before_w - after_w) / block.power_w, block, before_w, after_w)
        for block, before_w, after_w in known
        # A GPU that nobody else computed on keeps its clocks up after its last process: that is no other program.
        if block.energy.idle_processes != 0 or max(before_w, after_w) > CLOCKS_UP_RATIO * min(before_w, after_w)
    ]
    if not moved:
        return None
    moved_pct, block, before_w, after_w = max(moved, key=itemgetter(0))
    values: dict[str, Value] = {"before_w": before_w, "after_w": after_w, "sensor": block.energy.sensor}
    return Found(values | {"gross_w": block.power_w}, moved_pct)


@rule("warning", on="accelerator", at_least=WARMING_C_PER_S)
@says(
    "{who}: the device's temperature changed by {slope_c_per_s:+.2f} °C per second while joules were measured "
    "({moved_c:.1f} °C in {block_s})."
)
def device_still_warming(cell: MeasuredCell) -> Found | None:
    """Find cells whose device still changed its temperature while energy was measured."""
    slopes = [
        (slope, energy.block_ns / 1e9) for energy, *_ in _figures(cell) if (slope := energy.warming_c_per_s) is not None
    ]
    if not slopes:
        raise not_recorded("warming_c_per_s")
    slope, block_s = max(slopes, key=lambda pair: abs(pair[0]))
    values = {"slope_c_per_s": slope, "moved_c": abs(slope) * block_s, "block_s": block_s}
    remedy = _longer(cell, "longer_energy_warmup")
    return Found(values, value=abs(slope), remedy=remedy) if values["moved_c"] > WARMING_C else None


@rule("warning", "whole_machine")
@says(
    "{who}: the joules are the whole {scope}'s, but the worker had {cpus} of {of_cpus} CPUs; other programs took "
    "{contention_pct:.0f} % of all."
)
@says("{who}: the joules include other programs, which took {contention_pct:.0f} % of the CPUs.", code="scope_shared")
def scope_larger_than_worker(cell: MeasuredCell) -> Found | None:
    """Find joules that include CPUs which the worker did not have, or work of other programs."""
    blocks = _figures(cell)
    if cell.cell.device != "cpu":
        return None  # joules of a shared GPU are refused
    threads, of_cpus, lost = cell.threads, cell.run.profile.identity.integer("cpu.cores_logical"), cell.lost
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
    tiers = sorted({block.energy.tier.replace("_", " ") for block in _figures(*group) if block.energy.tier})
    return Found({"tiers": ", ".join(tiers)}) if "modelled" in tiers and len(tiers) > 1 else None
