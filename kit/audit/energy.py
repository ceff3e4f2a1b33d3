"""Joules: how many readings they rest on, whether their sensors agree and move, what else is in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kit.audit.rule import NOT_APPLICABLE, Member, Outcome, rule, why_unread
from kit.compare.cpu_loss import cpu_loss
from kit.compare.launch_arrays import sustained_step
from kit.devices.catalog import DEVICES
from kit.profile.reason import Reason, Value, reason
from kit.profile.sensor import Energy

# An unaligned end costs up to one update: of a hundred, 1 %.
UPDATES_LEAST = 100
# Counters and integrals of one board agree to 1 to 3 %; the self-test on hardware holds them to the same.
DISAGREEMENT_LEAST_PCT = 5.0
# A package and the platform around it are read at other moments: a few percent are no contradiction.
PART_SLACK = 1.05
# Of what the member draws above idle, or of the idle itself.
IDLE_MOVED_LEAST_PCT = 10.0
# A board keeps its clocks up for some time after its last process has ended: an H100 draws 72 W idle, 106 W then, and
# 122 W with a process that does nothing.
CLOCKS_UP_RATIO = 2.0
# Leakage grows with heat: a board that warms faster draws some tenths of a percent more within a block. NVML tells
# whole degrees: one that changes within the block looks like a slope of up to 1.5 degrees over it.
WARMING_LEAST_C_PER_S, WARMING_LEAST_C = 0.1, 1.5
SENSOR_BROKEN = ("zero_power", "counter_stuck", "constant_power", "negative_power", "reading_not_finite")
# Names of sensors of a whole platform, and beginnings of those of its parts. What a Cray's accelerator modules hold is
# not told; its processors, one by one, are in cray.cpu.
PLATFORMS = ("rapl.psys", "cray.node.energy")
PARTS = ("rapl.package", "rapl.dram", "nvml.", "cray.cpu.energy")


class _Block(NamedTuple):
    """What one sensor said of one launch's block."""

    energy: Energy
    round: int
    power_w: float


def _joules(member: Member) -> list[_Block]:
    """Return what every sensor gave of the member's long blocks; nothing gives joules back."""
    return [
        _Block(energy, launch.round, (energy.joules_j or 0) / (energy.window_ns or 1) * 1e9)
        for launch in member.launches.values()
        for energy in launch.energy
        if energy.kind == "steady" and (energy.joules_j or 0) > 0 and (energy.window_ns or 0) > 0
    ]


def _figures(member: Member) -> list[_Block]:
    """Return those that the member's joules are made of: of the sensors that together are its device, or of a meter."""
    names = _whole(member)
    return [of for of in _joules(member) if of.energy.sensor in names or of.energy.tier == "external_meter"]


def _whole(member: Member) -> list[str]:
    device = DEVICES.get(member.cell.device)  # a profile may be of a kit that has another kind
    names = (energy.sensor for launch in member.launches.values() for energy in launch.energy)
    return [] if device is None else device.whole_of(dict.fromkeys(names))


def _refused(member: Member, codes: Sequence[str]) -> list[tuple[str, str]]:
    """Return sensor and code of each refusal of the device's joules that is one of these."""
    names = _whole(member)
    return [
        (energy.sensor, energy.reason.code)
        for launch in member.launches.values()
        for energy in launch.energy
        if energy.kind == "steady"
        and energy.reason is not None
        and energy.reason.code in codes
        and (energy.sensor in names or energy.tier == "external_meter")
    ]


@rule("member", worst="note")
def no_joules(member: Member) -> Outcome:
    """Find cells without joules; the outcome is always *could not check*, with the reason."""
    return None if _figures(member) else _why_none(member)


def _why_none(member: Member) -> Reason:
    """Return the first refusal, the sensors' own reason, or that no joules were asked for."""
    for launch in member.launches.values():
        for energy in launch.energy:
            if energy.reason is not None:
                return energy.reason
    device = DEVICES.get(member.cell.device)
    sensors = [
        sensor
        for sensor in member.profile.sensors
        if sensor.quantity in ("energy", "power") and sensor.name.partition(".")[0] == (device and device.energy_source)
    ]
    answering = [sensor.name for sensor in member.profile.sensors if sensor.status != "unavailable"]
    if not sensors or (device is not None and device.whole_of(answering)):
        return reason("no_energy_asked_for")
    return why_unread(member.profile, *(sensor.name for sensor in sensors))


@rule("member", worst="warning")
def few_updates(member: Member) -> Outcome:
    """Find joules that rest on too few fresh values of their sensor."""
    blocks = _figures(member)
    if not blocks:
        return NOT_APPLICABLE
    periods_ns = {sensor.name: sensor.update_period_ns for sensor in member.profile.sensors}
    counts = [
        (_updates(block.energy, periods_ns.get(block.energy.sensor)), block.energy.sensor)
        for block in blocks
        if block.energy.updates is not None
    ]
    if not counts:
        return reason("not_recorded", what="updates")
    updates, sensor = min(counts)
    if updates >= UPDATES_LEAST:
        return None
    evidence: dict[str, Value] = {"sensor": sensor, "updates": updates, "needed": UPDATES_LEAST}
    return member.finding("few_updates", "warning", evidence, remedy=reason("longer_energy"))


def _updates(energy: Energy, period_ns: int | None) -> int:
    """Return how many fresh values the sensor had in the window: more than were read, of one that says its period."""
    of_period = energy.window_ns // period_ns if energy.window_ns and period_ns else 0
    return max(energy.updates or 0, of_period)


@rule("member", worst="warning")
def sensor_broken(member: Member) -> Outcome:
    """Find energy and power sensors that report zero, a constant, a negative value, or no number."""
    refused = _refused(member, SENSOR_BROKEN)
    if refused:
        sensor, code = refused[0]
        evidence: dict[str, Value] = {"sensor": sensor, "how": code.replace("_", " "), "launches": len(refused)}
        return member.finding("sensor_broken", "warning", evidence, remedy=reason("other_sensor"))
    return None if _figures(member) else NOT_APPLICABLE


@rule("member", worst="warning")
def counter_reset(member: Member) -> Outcome:
    """Find energy counters that were reset during a block."""
    resets = _refused(member, ("counter_reset",))
    if resets:
        evidence: dict[str, Value] = {"sensor": resets[0][0], "launches": len(resets)}
        return member.finding("counter_reset", "warning", evidence, remedy=reason("measure_again"))
    return None if _figures(member) else NOT_APPLICABLE


@rule("member", worst="warning", on="accelerator")
def sustained_differs(member: Member) -> Outcome:
    """Find cells whose step time differs between short blocks and the long energy block."""
    steps = sustained_step(member.launches.values())
    if steps is None:
        return reason("not_recorded", what="steps") if _figures(member) else NOT_APPLICABLE
    if not steps.differs:
        return None
    evidence: dict[str, Value] = {"difference_pct": steps.difference_pct, **steps._asdict()}
    return member.finding("sustained_differs", "warning", evidence, abs(steps.difference_pct), reason("longer_blocks"))


@rule("member", worst="warning", on="accelerator")
def counter_against_integral(member: Member) -> Outcome:
    """Find GPUs whose energy counter disagrees with their integrated power."""
    by_tier: dict[tuple[int, str | None], dict[str | None, float]] = defaultdict(dict)
    for block in _joules(member):
        if block.energy.device_id is not None:
            by_tier[block.round, block.energy.device_id][block.energy.tier] = block.power_w
    both = [of for of in by_tier.values() if {"device_counter", "integrated_power"} <= of.keys()]
    if not both:
        return reason("one_energy_source") if by_tier else NOT_APPLICABLE
    apart = [100 * (of["device_counter"] / of["integrated_power"] - 1) for of in both]
    worst = max(apart, key=abs)
    if abs(worst) < DISAGREEMENT_LEAST_PCT:
        return None
    evidence: dict[str, Value] = {"difference_pct": worst, "launches": len(both)}
    return member.finding("counter_against_integral", "warning", evidence, remedy=reason("external_meter"))


@rule("member", worst="bad")
def part_larger_than_whole(member: Member) -> Outcome:
    """Find machines whose parts drew more power than the whole, according to their sensors."""
    by_source, wholes = defaultdict[int, dict[str, float]](lambda: {"rapl": 0.0, "cray": 0.0, "nvml": 0.0}), {}
    for block in _joules(member):
        if block.energy.sensor in PLATFORMS or block.energy.tier == "external_meter":
            wholes[block.round] = block
        elif block.energy.tier in ("device_counter", "modelled") and block.energy.sensor.startswith(PARTS):
            by_source[block.round][block.energy.sensor.partition(".")[0]] += block.power_w
    # A Cray's controller and RAPL tell the same processors.
    parts = {number: max(of["rapl"], of["cray"]) + of["nvml"] for number, of in by_source.items()}
    both = [number for number in parts if number in wholes]
    if not both:
        return reason("one_energy_source") if parts or wholes else NOT_APPLICABLE
    worst = max(both, key=lambda number: parts[number] / wholes[number].power_w)
    if parts[worst] <= PART_SLACK * wholes[worst].power_w:
        return None
    evidence: dict[str, Value] = {
        "parts_w": parts[worst],
        "whole_w": wholes[worst].power_w,
        "whole": wholes[worst].energy.sensor,
    }
    return member.finding("part_larger_than_whole", "bad", evidence, remedy=reason("other_sensor"))


@rule("member", worst="note")
def no_idle(member: Member) -> Outcome:
    """Find joules without idle power, from which net joules cannot be computed."""
    blocks = _figures(member)
    if not blocks:
        return NOT_APPLICABLE
    lacking = [
        block.energy.sensor
        for block in blocks
        if block.energy.idle_before_w is None and block.energy.idle_after_w is None
    ]
    if not lacking:
        return None
    return member.finding("no_idle", "note", {"sensor": lacking[0], "blocks": len(lacking), "of_blocks": len(blocks)})


@rule("member", worst="warning")
def idle_not_idle(member: Member) -> Outcome:
    """Find cells whose idle power differs before and after the round."""
    idles = [
        (block, block.energy.idle_before_w, block.energy.idle_after_w)
        for block in _figures(member)
        if block.energy.idle_before_w is not None and block.energy.idle_after_w is not None
    ]
    if not idles:
        return reason("not_recorded", what="idle power") if _figures(member) else NOT_APPLICABLE
    idles = [idle for idle in idles if not _is_of_clocks(idle[0].energy, *idle[1:])]
    if not idles:
        return None
    moved = {block: 100 * abs(before_w - after_w) / block.power_w for block, before_w, after_w in idles}
    worst, before_w, after_w = max(idles, key=lambda idle: moved[idle[0]])
    if moved[worst] < IDLE_MOVED_LEAST_PCT:
        return None
    evidence: dict[str, Value] = {
        "before_w": before_w,
        "after_w": after_w,
        "sensor": worst.energy.sensor,
        "gross_w": worst.power_w,
    }
    return member.finding("idle_not_idle", "warning", evidence, moved[worst], reason("quiet_machine"))


def _is_of_clocks(energy: Energy, before_w: float, after_w: float) -> bool:
    """Whether idle power moved no further than clocks move it, on a board that nobody else computed on."""
    return energy.idle_processes == 0 and max(before_w, after_w) <= CLOCKS_UP_RATIO * min(before_w, after_w)


@rule("member", worst="warning", on="accelerator")
def device_still_warming(member: Member) -> Outcome:
    """Find cells whose device still changed its temperature while energy was measured."""
    blocks = _figures(member)
    slopes = [(block.energy, slope) for block in blocks if (slope := block.energy.warming_c_per_s) is not None]
    if not slopes:
        return reason("not_recorded", what="warming_c_per_s") if blocks else NOT_APPLICABLE
    energy, slope = max(slopes, key=lambda of: abs(of[1]))
    moved_c = abs(slope) * energy.block_ns / 1e9
    if abs(slope) <= WARMING_LEAST_C_PER_S or moved_c <= WARMING_LEAST_C:
        return None
    evidence: dict[str, Value] = {"slope_c_per_s": slope, "moved_c": moved_c, "block_s": energy.block_ns / 1e9}
    return member.finding("device_still_warming", "warning", evidence, remedy=reason("longer_energy_warmup"))


@rule("member", worst="warning", also=("scope_shared",))
def scope_larger_than_worker(member: Member) -> Outcome:
    """Find joules that include CPUs which the worker did not have, or work of other programs."""
    blocks = _figures(member)
    if not blocks:
        return NOT_APPLICABLE
    if member.cell.device != "cpu":
        return None  # a shared board's joules are refused
    threads = next((launch.threads for launch in member.launches.values() if launch.threads is not None), None)
    cpus, lost = (
        member.profile.identity.integer("cpu.cores_logical"),
        cpu_loss(member.cell, member.all_launches.values()),
    )
    if threads is None or cpus is None or lost is None:
        return why_unread(member.profile, "process.cpu_ns", "machine.busy_ns")
    if len(threads.cpus) >= cpus and not lost.is_contended:
        return None
    if len(threads.cpus) >= cpus:
        shared: dict[str, Value] = {"contention_pct": lost.contention_pct}
        remedy = reason("quiet_machine")
        return member.finding("scope_shared", "warning", shared, lost.contention_pct, remedy)
    scope = "machine" if any(block.energy.tier == "external_meter" for block in blocks) else "package"
    evidence: dict[str, Value] = {"cpus": len(threads.cpus), "of_cpus": cpus, "contention_pct": lost.contention_pct}
    evidence["scope"] = scope
    return member.finding("scope_larger_than_worker", "warning", evidence, lost.contention_pct, reason("whole_machine"))


@rule("group", worst="bad")
def modelled_beside_measured(members: Sequence[Member]) -> Outcome:
    """Find groups in which some joules were measured and others modelled."""
    tiers = {block.energy.tier for member in members for block in _figures(member)} - {None}
    if not tiers:
        return NOT_APPLICABLE
    if "modelled" not in tiers or len(tiers) == 1:
        return None
    evidence: dict[str, Value] = {"tiers": ", ".join(sorted(str(tier).replace("_", " ") for tier in tiers))}
    return replace(members[0].finding("modelled_beside_measured", "bad", evidence), cell_key="")
