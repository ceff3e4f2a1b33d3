"""Rules on accelerators: what slowed them, who else used them, whether they are whole and did the work."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NoReturn

from kit.audit.remedies import on_gpu
from kit.audit.rule import Found, Outcome, rule, says
from kit.audit.subject import MeasuredCell, MeasuredRun, NotMeasuredError, not_recorded
from kit.devices.gpu import CAP_SHARE, SLOWED_LEAST_PCT, is_capped, reaches_cap
from kit.profile.fields import Reason, Value, reason
from kit.profile.schema import Launch

# Boost clocks move in steps of 15 MHz, under 1 % of the rated clock.
RATED_FRACTION = 0.985
# Five steps of 15 MHz, and more than what a verdict calls the same for a step that the clock bounds.
CLOCKS_APART_PCT = 3.0
# Utilization says that some kernel ran, not that it computed. While a kernel computes, GPM's activities are tens of
# percent of the time for which its multiprocessors have work; a kernel that waits or spins has work and no activity.
FULL_PCT, COMPUTING_FRACTION = 95.0, 0.05
# A host that feeds the GPU one kernel of 1 ms each 100 ms is seen in the utilization: at 0 nothing ran at all.
USED_PCT = 0.0
# Beginnings of the names of accelerators' sensors.
ACCELERATOR_SENSORS = ("nvml.", "tpu.")
# NVML's clocks event reasons, as sensors name them, that halve the clock or worse.
HARDWARE_REASONS = ("hardware_slowdown", "hardware_thermal_slowdown", "hardware_power_brake")
# What says for which part of the time a power cap held a GPU back: its driver's count, or the sampled reasons.
CAPPED = ("power_violation", "throttled.software_power_cap")


def _gauge(cell: MeasuredCell, sensor: str) -> dict[int, float]:
    """Return the mean of an accelerator's sensor by round; the largest of several that a launch used."""
    means = {
        number: [
            summary.mean
            for name, summary in launch.record.sensors.items()
            if name.startswith(ACCELERATOR_SENSORS) and name.endswith(f".{sensor}")
        ]
        for number, launch in cell.launches.items()
    }
    return {number: max(launch_means) for number, launch_means in means.items() if launch_means}


def _needed(cell: MeasuredCell, sensor: str) -> dict[int, float]:
    """Return the same of a sensor without which the rule cannot check."""
    return _gauge(cell, sensor) or _raise_unread(cell, sensor)


def _raise_unread(cell: MeasuredCell, sensor: str) -> NoReturn:
    """Raise the reason why no launch has a mean of that sensor."""
    reasons = ((name, why) for record in cell.records for name, why in record.sensor_reasons.items())
    for name, why in reasons:
        if name.endswith(f".{sensor}"):
            raise NotMeasuredError(why)
    names = [report.name for report in cell.run.profile.sensors if report.name.endswith(f".{sensor}")]
    raise cell.unread(*names) if names else not_recorded(sensor)


def _marks(cell: MeasuredCell, code: str) -> list[Reason]:
    return [mark for record in cell.records for mark in record.notes if mark.code == code]


@rule("bad", "cool_board", on="accelerator", explains=("device_throttled",))
@says("{who}: the hardware slowed the GPU down in {share_pct:.1f} % of the readings: {causes}.")
def hardware_slowdown(cell: MeasuredCell) -> Found | None:
    """Find cells whose GPU was slowed down by its own hardware, because of heat or power."""
    _needed(cell, "throttled")
    shares_pct = {name: max(_gauge(cell, f"throttled.{name}").values(), default=0.0) for name in HARDWARE_REASONS}
    share_pct = max(shares_pct.values())
    causes = ", ".join(name.replace("_", " ") for name, cause_pct in shares_pct.items() if cause_pct)
    return Found({"share_pct": share_pct, "causes": causes}, share_pct) if share_pct else None


@rule("warning", "cool_board", on="accelerator")
@says("{who}: the device was throttled up to {share_pct:.0f} % of the time: {causes}.")
def device_throttled(cell: MeasuredCell) -> Found | None:
    """Find cells whose device was throttled, and the cause."""
    # A profile that somebody else wrote may have anything in its marks.
    shares_pct = [(mark.values.get("share_pct"), mark) for mark in _marks(cell, "device_throttled")]
    slowed = [(share if isinstance(share, int | float) else 0.0, mark) for share, mark in shares_pct]
    if slowed:
        (share_pct, worst), capped = max(slowed, key=itemgetter(0)), _marks(cell, "power_capped")
        remedy = reason("raise_power_cap", select="", **capped[0].values) if capped else reason("cool_board")
        return Found(worst.values, share_pct, remedy=remedy)
    by_heat = _gauge(cell, "thermal_violation")
    if not by_heat:
        _needed(cell, "throttled")
    heat_pct = max(by_heat.values(), default=0.0)
    return Found({"share_pct": heat_pct, "causes": "heat"}, heat_pct) if heat_pct >= SLOWED_LEAST_PCT else None


@rule("bad", "at_cap", on="accelerator", explains=("device_throttled",))
@says(
    "{who}: the power cap limited the GPU {share_pct:.0f} % of the time: it drew {power_w} of {cap_w} (at most "
    "{power_max_w}) at {clock_mhz} of {rated_mhz}."
)
def power_capped(cell: MeasuredCell) -> Found | None:
    """Find cells whose GPU was limited by its power cap, or is slow although it draws far less than its cap."""
    violation_pct, capped_pct = (_gauge(cell, name).values() for name in CAPPED)
    if not violation_pct:
        _needed(cell, "throttled")
    if max([*violation_pct, *capped_pct], default=0.0) < SLOWED_LEAST_PCT:
        return None
    held_back = [gpu for record in cell.records for gpu in _held_back(cell, record)]
    if not held_back:
        raise not_recorded("power, frequency, power_cap_w")
    # Below its cap a GPU has another reason to be slow; the slowest of those is shown before any that is at its cap.
    at_cap = [gpu for gpu in held_back if reaches_cap(gpu["power_max_w"], gpu["cap_w"])]
    slow = [gpu for gpu in held_back if gpu["clock_mhz"] < RATED_FRACTION * gpu["rated_mhz"]]
    below = [gpu for gpu in slow if gpu not in at_cap]
    if not below and not at_cap:
        return None
    worst = min(below or at_cap, key=lambda gpu: gpu["clock_mhz"] / gpu["rated_mhz"])
    if below:
        return Found(worst, worst["share_pct"], remedy=reason("look_at_supply"))
    return Found(worst, worst["share_pct"], severity="note")


def _held_back(cell: MeasuredCell, launch: Launch) -> Iterator[dict[str, float]]:
    """Yield what a launch saw of each GPU that its cap held back for long enough, by the GPU's own readings."""
    used = {device_id for record in cell.records for device_id in record.device_ids}
    for gpu in cell.run.profile.state.before.accelerators():
        names = tuple(sensor.name for sensor in cell.run.profile.sensors if gpu.device_id == sensor.device_id)
        shown = {
            name.split(".", 2)[-1]: gpu_summary
            for name, gpu_summary in launch.sensors.items()
            if name.startswith(names)
        }
        share_pct = max((shown[name].mean for name in CAPPED if name in shown), default=0.0)
        power, clock, cap_w = shown.get("power"), shown.get("frequency"), gpu.power_cap_w
        rated_mhz = gpu.clock_limit_mhz or gpu.clock_max_mhz
        is_held_back = gpu.device_id in used and share_pct >= SLOWED_LEAST_PCT
        if is_held_back and power and clock and clock.mean and cap_w and rated_mhz:
            watts = {"power_w": power.mean, "power_max_w": power.max, "cap_w": cap_w}
            yield {"share_pct": share_pct, **watts, "clock_mhz": clock.mean, "rated_mhz": rated_mhz}


@rule("warning", on="accelerator")
@says("{board}: the power cap is {cap_w}; the default is {default_w}.")
def cap_below_default(run: MeasuredRun) -> Iterator[Outcome]:
    """Find GPUs whose power cap is below the default."""
    for gpu in run.gpus():
        if (is_below := is_capped(gpu)) is None:
            yield not_recorded("power_cap_default_w")
        elif is_below:
            caps = {"cap_w": gpu.power_cap_w or 0.0, "default_w": gpu.power_cap_default_w or 0.0}
            yield Found({"board": gpu.name, **caps}, remedy=on_gpu("raise_power_cap", gpu, **caps))


@rule("warning", on="accelerator")
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
                values |= {"boards": len(by_gpu), "board": name}
                yield Found(values, profile=label, remedy=reason("same_caps", usual_w=usual_w))


@rule("warning", on="accelerator", at_least=CLOCKS_APART_PCT)
@says("{who}: the clock was {clock_mhz}; the group's fastest cell had {fastest_mhz} (rounds: {rounds}).")
def clocks_differ(group: Sequence[MeasuredCell]) -> Found:
    """Find groups whose cells ran at different clocks in the same rounds."""
    clocks = [{number: mhz for number, mhz in _gauge(cell, "frequency").items() if mhz} for cell in group]
    shared = set.intersection(*map(set, clocks))
    if not shared:
        _raise_unread(group[0], "frequency")
    means_mhz = [statistics.fmean(by_round[number] for number in shared) for by_round in clocks]
    slowest, fastest = min(means_mhz), max(means_mhz)
    values = {"clock_mhz": slowest, "fastest_mhz": fastest, "rounds": len(shared)}
    remedy = reason("lock_clocks", clock_mhz=slowest)
    return Found(values, 100 * (fastest / slowest - 1), cell_key=group[means_mhz.index(slowest)].key, remedy=remedy)


@rule("warning", "reseat_board", on="accelerator")
@says("{board}: {lanes} of {of_lanes} PCIe lanes are in use.")
def pcie_narrow(run: MeasuredRun) -> Iterator[Outcome]:
    """Find GPUs that use fewer PCIe lanes than they and their slot have."""
    for gpu in run.gpus():
        if gpu.pcie_width is None or gpu.pcie_width_max is None:
            yield not_recorded("pcie_width")
        elif gpu.pcie_width < gpu.pcie_width_max:
            yield Found({"board": gpu.name, "lanes": gpu.pcie_width, "of_lanes": gpu.pcie_width_max})


@rule("bad", on="accelerator")
@says("{board}: the memory had uncorrectable errors ({errors}), so results may be wrong.")
def ecc(run: MeasuredRun) -> Iterator[Outcome]:
    """Find GPUs with uncorrectable memory errors since the driver was loaded."""
    for gpu in run.gpus():
        if gpu.ecc_uncorrected:
            yield Found({"board": gpu.name, "errors": gpu.ecc_uncorrected}, remedy=on_gpu("reset_board", gpu))
        elif gpu.ecc_uncorrected is None and gpu.ecc is not False:
            yield not_recorded("ecc_uncorrected")


@rule("note", on="accelerator")
@says("{board}: MIG is on, so only a slice of the GPU was measured.")
def mig(run: MeasuredRun) -> Iterator[Outcome]:
    """Find GPUs that are split into MIG slices."""
    for gpu in run.gpus():
        if gpu.mig is None:
            yield not_recorded("mig")
        elif gpu.mig:
            yield Found({"board": gpu.name}, remedy=on_gpu("whole_board", gpu))


@rule("bad", "free_board", on="accelerator")
@says(
    "{who}: processes of other programs ran on the device (up to {processes}), in {launches} of {of_launches} launches."
)
def device_shared(cell: MeasuredCell) -> Found | None:
    """Find cells whose device ran processes of other programs before or after a round."""
    marks, launches = _marks(cell, "device_shared"), len(cell.launches)
    counts = [count for mark in marks if isinstance(count := mark.values.get("processes"), int)]
    values = {"processes": max(counts, default=0), "launches": len(marks), "of_launches": launches}
    return Found(values, 100 * len(marks) / launches) if marks else None


@rule("bad", "see_where_it_ran", on="accelerator")
@says(
    "{who}: the GPU reported {utilization_pct:.0f} % utilization but hardly computed: tensor cores "
    "{tensor_pct:.1f} %, float32 {fp32_pct:.1f} %, memory {dram_pct:.1f} %."
)
def gpu_full_but_not_computing(cell: MeasuredCell) -> Found | None:
    """Find cells whose GPU reported full utilization while it neither computed nor moved memory."""
    full_pct = statistics.fmean(_needed(cell, "utilization").values())
    if full_pct < FULL_PCT:
        return None
    activities = [_gauge(cell, f"{name}_activity").values() for name in ("sm", "tensor", "fp32", "dram")]
    if not all(activities):
        _raise_unread(cell, "tensor_activity")
    sm_pct, *computing_pct = map(statistics.fmean, activities)
    # A small kernel fills few multiprocessors; what it computes is measured against these.
    if max(computing_pct) > COMPUTING_FRACTION * sm_pct:
        return None
    named = dict(zip(("tensor_pct", "fp32_pct", "dram_pct"), computing_pct, strict=True))
    return Found({"utilization_pct": full_pct, **named}, 100.0)


@rule("bad", "see_where_it_ran", on="accelerator")
@says("{who}: the {device} showed no activity ({utilization_pct:.1f} % utilization).")
def device_declared_not_used(cell: MeasuredCell) -> Found | None:
    """Find cells whose device showed no activity during the blocks."""
    busy_pct = statistics.fmean(_needed(cell, "utilization").values())
    values: dict[str, Value] = {"device": cell.cell.device, "utilization_pct": busy_pct}
    return Found(values, 100.0) if busy_pct <= USED_PCT else None
