"""Rules on accelerators: what slowed them, who else used them, whether they are whole and did the work."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kit.audit import limits
from kit.audit.rule import Found, Outcome, rule, says
from kit.audit.subject import MeasuredCell, MeasuredRun, NotMeasuredError, not_recorded
from kit.devices.limits import CAP_SHARE, SLOWED_LEAST_PCT, is_capped, reaches_cap
from kit.profile.launch import Launch
from kit.profile.reason import Reason, Value, reason

# Beginnings of the names of accelerators' sensors.
ACCELERATOR_SENSORS = ("nvml.", "tpu.")
# NVML's clocks event reasons, as sensors name them, that halve the clock or worse.
HARDWARE_REASONS = ("hardware_slowdown", "hardware_thermal_slowdown", "hardware_power_brake")


def _gauge(launch: Launch, sensor: str) -> float | None:
    """Return the mean of an accelerator's sensor in a launch, the largest where it used several."""
    means = [
        summary.mean
        for name, summary in launch.sensors.items()
        if name.startswith(ACCELERATOR_SENSORS) and name.endswith(f".{sensor}")
    ]
    return max(means, default=None)


def _over_launches(
    cell: MeasuredCell, sensor: str, summed_up: Callable[[Iterable[float]], float] = max
) -> float | None:
    means = [mean for launch in cell.launches.values() if (mean := _gauge(launch, sensor)) is not None]
    return summed_up(means) if means else None


def _needed(cell: MeasuredCell, sensor: str, summed_up: Callable[[Iterable[float]], float] = max) -> float:
    """Return the same of a sensor without which the rule cannot check."""
    value = _over_launches(cell, sensor, summed_up)
    if value is None:
        raise _no_gauge(cell, sensor)
    return value


def _no_gauge(cell: MeasuredCell, sensor: str) -> NotMeasuredError:
    """Return the error with the reason why no launch has a mean of that sensor."""
    for launch in cell.launches.values():
        for name, why in launch.sensor_reasons.items():
            if name.endswith(f".{sensor}"):
                return NotMeasuredError(why)
    names = [report.name for report in cell.profile.sensors if report.name.endswith(f".{sensor}")]
    return cell.unread(*names) if names else not_recorded(sensor)


@rule("bad", "cool_board", on="accelerator", explains=("device_throttled",))
@says("{who}: the hardware slowed the GPU down in {share_pct:.1f} % of the readings: {causes}.")
def hardware_slowdown(cell: MeasuredCell) -> Found | None:
    """Find cells whose GPU was slowed down by its own hardware, because of heat or power."""
    _needed(cell, "throttled")
    shares_pct = {name: _over_launches(cell, f"throttled.{name}") or 0.0 for name in HARDWARE_REASONS}
    share_pct = max(shares_pct.values())
    causes = ", ".join(name.replace("_", " ") for name, of_cause_pct in shares_pct.items() if of_cause_pct)
    return Found({"share_pct": share_pct, "causes": causes}, share_pct) if share_pct else None


@rule("warning", "cool_board", on="accelerator")
@says("{who}: the device was throttled up to {share_pct:.0f} % of the time: {causes}.")
def device_throttled(cell: MeasuredCell) -> Found | None:
    """Find cells whose device was throttled, and the cause."""
    marks = [mark for launch in cell.launches.values() for mark in launch.notes]
    if slowed := [mark for mark in marks if mark.code == "device_throttled"]:
        worst, capped = max(slowed, key=_share_pct), [mark for mark in marks if mark.code == "power_capped"]
        remedy = reason("raise_power_cap", **capped[0].values) if capped else reason("cool_board")
        return Found(worst.values, _share_pct(worst), remedy=remedy)
    heat_pct = _over_launches(cell, "thermal_violation")
    if heat_pct is None:
        _needed(cell, "throttled")
    if heat_pct is None or heat_pct < SLOWED_LEAST_PCT:
        return None
    return Found({"share_pct": heat_pct, "causes": "heat"}, heat_pct)


def _share_pct(mark: Reason) -> float:
    share_pct = mark.values.get("share_pct")
    return share_pct if isinstance(share_pct, int | float) else 0.0  # of a profile that somebody else wrote


class _HeldBack(NamedTuple):
    """What one launch saw of a GPU that its power cap held back."""

    share_pct: float  # of the time
    power_w: float
    power_max_w: float
    cap_w: float
    clock_mhz: float
    rated_mhz: float


@rule("bad", "at_cap", on="accelerator", explains=("device_throttled",))
@says(
    "{who}: the power cap limited the GPU {share_pct:.0f} % of the time: it drew {power_w} of {cap_w} (at most "
    "{power_max_w}) at {clock_mhz} of {rated_mhz}."
)
def power_capped(cell: MeasuredCell) -> Found | None:
    """Find cells whose GPU was limited by its power cap, or is slow although it draws far less than its cap."""
    violation_pct, capped_pct = (
        _over_launches(cell, name) for name in ("power_violation", "throttled.software_power_cap")
    )
    if violation_pct is None:
        _needed(cell, "throttled")
    if max(violation_pct or 0.0, capped_pct or 0.0) < SLOWED_LEAST_PCT:
        return None
    held_back = [gpu for launch in cell.launches.values() for gpu in _held_back(cell, launch)]
    if not held_back:
        raise not_recorded("power, frequency, power_cap_w")
    # Below its cap a GPU has another reason to be slow; the slowest of those is shown before any that is at its cap.
    at_cap = [gpu for gpu in held_back if reaches_cap(gpu.power_max_w, gpu.cap_w)]
    below = [gpu for gpu in held_back if gpu not in at_cap and gpu.clock_mhz < limits.RATED_FRACTION * gpu.rated_mhz]
    if not below and not at_cap:
        return None
    worst = min(below or at_cap, key=lambda gpu: gpu.clock_mhz / gpu.rated_mhz)
    if below:
        return Found(worst._asdict(), worst.share_pct, remedy=reason("look_at_supply"))
    return Found(worst._asdict(), worst.share_pct, severity="note")


def _held_back(cell: MeasuredCell, launch: Launch) -> Iterator[_HeldBack]:
    """Yield each GPU of a launch that its cap held back for long enough, by its own readings."""
    used = {device_id for each in cell.launches.values() for device_id in each.device_ids}
    names = {sensor.name: sensor.device_id for sensor in cell.profile.sensors if sensor.device_id}
    for gpu in cell.profile.state.before.accelerators():
        if gpu.device_id not in used:
            continue
        prefixes = tuple(name for name, device_id in names.items() if device_id == gpu.device_id)
        shown = {name.split(".", 2)[-1]: of for name, of in launch.sensors.items() if name.startswith(prefixes)}
        capped = (shown.get(name) for name in ("power_violation", "throttled.software_power_cap"))
        share_pct = max((summary.mean for summary in capped if summary is not None), default=0.0)
        power, clock, cap_w = shown.get("power"), shown.get("frequency"), gpu.power_cap_w
        rated_mhz = gpu.clock_limit_mhz or gpu.clock_max_mhz
        if share_pct >= SLOWED_LEAST_PCT and power and clock and clock.mean and cap_w and rated_mhz:
            yield _HeldBack(share_pct, power.mean, power.max, cap_w, clock.mean, rated_mhz)


@rule("warning", "raise_power_cap", on="accelerator")
@says("{board}: the power cap is {cap_w}; the default is {default_w}.")
def cap_below_default(run: MeasuredRun) -> Iterator[Outcome]:
    """Find GPUs whose power cap is below the default."""
    for gpu in run.gpus():
        if (is_below := is_capped(gpu)) is None:
            yield not_recorded("power_cap_default_w")
        elif is_below:
            caps = {"cap_w": gpu.power_cap_w or 0.0, "default_w": gpu.power_cap_default_w or 0.0}
            yield Found({"board": gpu.name, **caps}, remedy=reason("raise_power_cap", **caps))


@rule("warning", "same_caps", on="accelerator")
@says("{board} ({model}): the power cap is {cap_w}; most of {boards} GPUs have {usual_w}.")
def caps_differ(runs: Sequence[MeasuredRun]) -> Iterator[Outcome]:
    """Find GPUs whose power cap differs from that of most GPUs of the same model."""
    caps_w: dict[str, dict[tuple[str, str], float]] = {}  # model -> label and GPU -> its cap
    for run in runs:
        models = {gpu.device_id: gpu.model for gpu in run.profile.identity.accelerators()}
        for gpu in run.profile.state.before.accelerators():
            if gpu.power_cap_w is not None and gpu.device_id in models:
                caps_w.setdefault(models[gpu.device_id], {})[run.label, gpu.name] = gpu.power_cap_w
    alike = {model: by_gpu for model, by_gpu in caps_w.items() if len(by_gpu) > 1}
    if not alike:
        raise not_recorded("power_cap_w")
    for model, by_gpu in alike.items():
        usual_w = statistics.median_high(by_gpu.values())
        for (label, name), cap_w in by_gpu.items():
            if abs(cap_w / usual_w - 1) > 1 - CAP_SHARE:
                values: dict[str, Value] = {"model": model, "cap_w": cap_w, "usual_w": usual_w}
                yield Found(values | {"boards": len(by_gpu), "board": name}, profile=label)


@rule("warning", "lock_clocks", on="accelerator", at_least=limits.CLOCKS_APART_PCT)
@says("{who}: the clock was {clock_mhz}; the group's fastest cell had {fastest_mhz} (rounds: {rounds}).")
def clocks_differ(group: Sequence[MeasuredCell]) -> Found:
    """Find groups whose cells ran at different clocks in the same rounds."""
    clocks = [{number: _gauge(launch, "frequency") for number, launch in cell.launches.items()} for cell in group]
    shared = set.intersection(*({number for number, mhz in by_round.items() if mhz} for by_round in clocks))
    if not shared:
        raise _no_gauge(group[0], "frequency")
    means_mhz = [statistics.fmean(by_round[number] or 0.0 for number in shared) for by_round in clocks]
    slowest, fastest = min(means_mhz), max(means_mhz)
    values = {"clock_mhz": slowest, "fastest_mhz": fastest, "rounds": len(shared)}
    slow = group[means_mhz.index(slowest)]
    return Found(values, 100 * (fastest / slowest - 1), cell_key=slow.key)


@rule("warning", "reseat_board", on="accelerator")
@says("{board}: {lanes} of {of_lanes} PCIe lanes are in use.")
def pcie_narrow(run: MeasuredRun) -> Iterator[Outcome]:
    """Find GPUs that use fewer PCIe lanes than they and their slot have."""
    for gpu in run.gpus():
        if gpu.pcie_width is None or gpu.pcie_width_max is None:
            yield not_recorded("pcie_width")
        elif gpu.pcie_width < gpu.pcie_width_max:
            yield Found({"board": gpu.name, "lanes": gpu.pcie_width, "of_lanes": gpu.pcie_width_max})


@rule("bad", "reset_board", on="accelerator")
@says("{board}: the memory had uncorrectable errors ({errors}), so results may be wrong.")
def ecc(run: MeasuredRun) -> Iterator[Outcome]:
    """Find GPUs with uncorrectable memory errors since the driver was loaded."""
    for gpu in run.gpus():
        if gpu.ecc_uncorrected:
            yield Found({"board": gpu.name, "errors": gpu.ecc_uncorrected})
        elif gpu.ecc_uncorrected is None and gpu.ecc is not False:
            yield not_recorded("ecc_uncorrected")


@rule("note", "whole_board", on="accelerator")
@says("{board}: MIG is on, so only a slice of the GPU was measured.")
def mig(run: MeasuredRun) -> Iterator[Outcome]:
    """Find GPUs that are split into MIG slices."""
    for gpu in run.gpus():
        if gpu.mig is None:
            yield not_recorded("mig")
        elif gpu.mig:
            yield Found({"board": gpu.name})


@rule("bad", "free_board", on="accelerator")
@says(
    "{who}: processes of other programs ran on the device (up to {processes}), in {launches} of {of_launches} launches."
)
def device_shared(cell: MeasuredCell) -> Found | None:
    """Find cells whose device ran processes of other programs before or after a round."""
    launches = cell.launches.values()
    marks = [mark for launch in launches for mark in launch.notes if mark.code == "device_shared"]
    counts = [count for mark in marks if isinstance(count := mark.values.get("processes"), int)]
    values = {"processes": max(counts, default=0), "launches": len(marks), "of_launches": len(launches)}
    return Found(values, 100 * len(marks) / len(launches)) if marks else None


@rule("bad", "see_where_it_ran", on="accelerator")
@says(
    "{who}: the GPU reported {utilization_pct:.0f} % utilization but hardly computed: tensor cores "
    "{tensor_pct:.1f} %, float32 {fp32_pct:.1f} %, memory {dram_pct:.1f} %."
)
def gpu_full_but_not_computing(cell: MeasuredCell) -> Found | None:
    """Find cells whose GPU reported full utilization while it neither computed nor moved memory."""
    full_pct = _needed(cell, "utilization", statistics.fmean)
    if full_pct < limits.FULL_PCT:
        return None
    activities = ("sm", "tensor", "fp32", "dram")
    means = [_over_launches(cell, f"{name}_activity", statistics.fmean) for name in activities]
    sm_pct, *computing_pct = [mean for mean in means if mean is not None] or [0.0]
    if None in means:
        raise _no_gauge(cell, "tensor_activity")
    # A small kernel fills few multiprocessors; what it computes is measured against these.
    if max(computing_pct) > limits.COMPUTING_FRACTION * sm_pct:
        return None
    named = dict(zip(("tensor_pct", "fp32_pct", "dram_pct"), computing_pct, strict=True))
    return Found({"utilization_pct": full_pct, **named}, 100.0)


@rule("bad", "see_where_it_ran", on="accelerator")
@says("{who}: the {device} showed no activity ({utilization_pct:.1f} % utilization).")
def device_declared_not_used(cell: MeasuredCell) -> Found | None:
    """Find cells whose device showed no activity during the blocks."""
    busy_pct = _needed(cell, "utilization", statistics.fmean)
    if busy_pct > limits.USED_PCT:
        return None
    return Found({"device": cell.cell.device, "utilization_pct": busy_pct}, 100.0)
