"""Accelerators: what slowed them, whose they were, whether they are whole, and whether they did the work."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kit.audit.finding import Finding, Severity
from kit.audit.rule import Audited, Member, Outcome, rule, why_unread
from kit.devices.limits import CAP_SHARE, SLOWED_LEAST_PCT, is_capped, reaches_cap
from kit.profile.identity import AcceleratorState
from kit.profile.launch import Launch
from kit.profile.reason import Reason, Value, reason

# Beginnings of the names of boards' sensors.
OF_BOARDS = ("nvml.", "tpu.")
# Of NVML's clocks event reasons, as sensors name them: to half the clock or less.
OF_HARDWARE = ("hardware_slowdown", "hardware_thermal_slowdown", "hardware_power_brake")
# Of its rated clock: boost clocks move in steps of 15 MHz, under one percent.
RATED_SHARE = 0.985
# Between members of one round: five steps of 15 MHz, and more than the verdict "same" bears of a step bound by it.
CLOCKS_APART_LEAST_PCT = 3.0
# Utilization says that some kernel ran, not that it computed; GPM's shares of one that does are tens of percent even
# for networks that memory bounds.
FULL_PCT = 95.0
# Of the share of multiprocessors that have something to do: a kernel that waits or spins has them and computes nothing.
NOT_COMPUTING_SHARE = 0.05
# A member whose host feeds it one kernel of a millisecond each 100 ms is seen there: at 0 nothing ran in any period.
NOT_USED_MAX_PCT = 0.0


@rule("member", worst="bad", on="accelerator")
def hardware_slowdown(member: Member) -> Outcome:
    """Find cells whose GPU was slowed down by its own hardware, because of heat or power."""
    seen = _largest(member, ".throttled")
    if seen is None:
        return _why_no_gauge(member, "throttled")
    shares_pct = {name: _largest(member, f".throttled.{name}") or 0.0 for name in OF_HARDWARE}
    share_pct = max(shares_pct.values())
    if not share_pct:
        return None
    causes = ", ".join(name.replace("_", " ") for name, share in shares_pct.items() if share)
    values: dict[str, Value] = {"share_pct": share_pct, "causes": causes}
    remedy = reason("cool_board")
    return member.finding("hardware_slowdown", "bad", values, share_pct, remedy, ("device_throttled",))


@rule("member", worst="warning", on="accelerator")
def device_throttled(member: Member) -> Outcome:
    """Find cells whose device was throttled, and the cause."""
    marks = [mark for launch in member.launches.values() for mark in launch.notes]
    if slowed := [mark for mark in marks if mark.code == "device_throttled"]:
        worst = max(slowed, key=_share_pct)
        capped = next((mark for mark in marks if mark.code == "power_capped"), None)
        remedy = reason("cool_board") if capped is None else Reason(code="raise_power_cap", values=capped.values)
        return member.finding("device_throttled", "warning", worst.values, _share_pct(worst), remedy)
    heat_pct = _largest(member, ".thermal_violation")
    if heat_pct is None:
        return None if _largest(member, ".throttled") is not None else _why_no_gauge(member, "throttled")
    if heat_pct < SLOWED_LEAST_PCT:
        return None
    values: dict[str, Value] = {"share_pct": heat_pct, "causes": "heat"}
    return member.finding("device_throttled", "warning", values, heat_pct, reason("cool_board"))


@rule("member", worst="bad", on="accelerator")
def power_capped(member: Member) -> Outcome:
    """Find cells whose GPU was limited by its power cap, or is slow although it draws far less than its cap."""
    shares_pct = [_largest(member, ".power_violation"), _largest(member, ".throttled.software_power_cap")]
    if shares_pct[0] is None and _largest(member, ".throttled") is None:
        return _why_no_gauge(member, "throttled")
    if max(share or 0.0 for share in shares_pct) < SLOWED_LEAST_PCT:
        return None
    held_back = [of for launch in member.launches.values() for of in _held_back(member, launch)]
    if not held_back:
        return reason("not_recorded", what="power, frequency, power_cap_w")
    # Below its cap it has another reason to be slow; the slowest of those is told before one that is at its cap.
    at_cap = [of for of in held_back if reaches_cap(of.power_max_w, of.cap_w)]
    below = [of for of in held_back if of not in at_cap and of.clock_mhz < RATED_SHARE * of.rated_mhz]
    if not below and not at_cap:
        return None
    worst = min(below or at_cap, key=lambda of: of.clock_mhz / of.rated_mhz)
    severity: Severity = "bad" if below else "note"
    remedy = reason("look_at_supply") if below else reason("at_cap")
    return member.finding("power_capped", severity, worst._asdict(), worst.share_pct, remedy, ("device_throttled",))


@rule("profile", worst="warning", on="accelerator")
def cap_below_default(audited: Audited) -> Outcome:
    """Find GPUs whose power cap is below the default."""

    def capped(board: AcceleratorState) -> Finding | Reason | None:
        is_below = is_capped(board)
        if is_below is None:
            return reason("not_recorded", what="power_cap_default_w")
        caps: dict[str, Value] = {"cap_w": board.power_cap_w or 0.0, "default_w": board.power_cap_default_w or 0.0}
        remedy = Reason(code="raise_power_cap", values=caps)
        values = {"board": board.name, **caps}
        return _of_board("cap_below_default", "warning", values, remedy) if is_below else None

    return _each_board(audited, capped)


@rule("fleet", worst="warning", on="accelerator")
def caps_differ(audited: Sequence[Audited]) -> Outcome:
    """Find GPUs whose power cap differs from that of most GPUs of the same model."""
    caps_w: dict[str, dict[tuple[str, str], float]] = {}
    for of in audited:
        models = {board.device_id: board.model for board in of.profile.identity.accelerators()}
        for board in of.profile.state.before.accelerators():
            if board.power_cap_w is not None and board.device_id in models:
                caps_w.setdefault(models[board.device_id], {})[of.label, board.name] = board.power_cap_w
    alike = {model: by_board for model, by_board in caps_w.items() if len(by_board) > 1}
    if not alike:
        return reason("not_recorded", what="power_cap_w")
    return [
        _of_board(
            "caps_differ",
            "warning",
            {"model": model, "cap_w": cap_w, "usual_w": usual_w, "boards": len(by_board), "board": name},
            reason("same_caps"),
            profile=label,
        )
        for model, by_board in alike.items()
        for usual_w in [statistics.median_high(by_board.values())]
        for (label, name), cap_w in by_board.items()
        if abs(cap_w / usual_w - 1) > 1 - CAP_SHARE
    ]


@rule("group", worst="warning", on="accelerator")
def clocks_differ(group: Sequence[Member]) -> Outcome:
    """Find groups whose cells ran at different clocks in the same rounds."""
    clocks = [{number: _gauge(launch, ".frequency") for number, launch in of.launches.items()} for of in group]
    shared = set.intersection(*({number for number, mhz in of.items() if mhz} for of in clocks))
    if not shared:
        return _why_no_gauge(group[0], "frequency")
    means_mhz = [statistics.fmean(of[number] or 0.0 for number in shared) for of in clocks]
    slowest, fastest = min(means_mhz), max(means_mhz)
    apart_pct = 100 * (fastest / slowest - 1)
    if apart_pct < CLOCKS_APART_LEAST_PCT:
        return None
    values: dict[str, Value] = {"clock_mhz": slowest, "fastest_mhz": fastest, "rounds": len(shared)}
    slow = group[means_mhz.index(slowest)]
    return slow.finding("clocks_differ", "warning", values, apart_pct, reason("lock_clocks"))


@rule("profile", worst="warning", on="accelerator")
def pcie_narrow(audited: Audited) -> Outcome:
    """Find GPUs that use fewer PCIe lanes than they and their slot have."""

    def narrow(board: AcceleratorState) -> Finding | Reason | None:
        if board.pcie_width is None or board.pcie_width_max is None:
            return reason("not_recorded", what="pcie_width")
        values: dict[str, Value] = {"board": board.name, "lanes": board.pcie_width, "of_lanes": board.pcie_width_max}
        is_narrow = board.pcie_width < board.pcie_width_max
        return _of_board("pcie_narrow", "warning", values, reason("reseat_board")) if is_narrow else None

    return _each_board(audited, narrow)


@rule("profile", worst="bad", on="accelerator")
def ecc(audited: Audited) -> Outcome:
    """Find GPUs with uncorrectable memory errors since the driver was loaded."""

    def broken(board: AcceleratorState) -> Finding | Reason | None:
        if board.ecc_uncorrected is None:
            return None if board.ecc is False else reason("not_recorded", what="ecc_uncorrected")
        values: dict[str, Value] = {"board": board.name, "errors": board.ecc_uncorrected}
        return _of_board("ecc", "bad", values, reason("reset_board")) if board.ecc_uncorrected else None

    return _each_board(audited, broken)


@rule("profile", worst="note", on="accelerator")
def mig(audited: Audited) -> Outcome:
    """Find GPUs that are split into MIG slices."""

    def in_slices(board: AcceleratorState) -> Finding | Reason | None:
        if board.mig is None:
            return reason("not_recorded", what="mig")
        return _of_board("mig", "note", {"board": board.name}, reason("whole_board")) if board.mig else None

    return _each_board(audited, in_slices)


@rule("member", worst="bad", on="accelerator")
def device_shared(member: Member) -> Outcome:
    """Find cells whose device ran processes of other programs before or after a round."""
    launches = member.launches.values()
    marks = [mark for launch in launches for mark in launch.notes if mark.code == "device_shared"]
    if not marks:
        return None
    counts = [count for mark in marks if isinstance(count := mark.values.get("processes"), int)]
    evidence = {"processes": max(counts, default=0), "launches": len(marks), "of_launches": len(launches)}
    return member.finding("device_shared", "bad", evidence, 100 * len(marks) / len(launches), reason("free_board"))


@rule("member", worst="bad", on="accelerator")
def gpu_full_but_not_computing(member: Member) -> Outcome:
    """Find cells whose GPU reported full utilization while it neither computed nor moved memory."""
    full_pct = _mean(member, ".utilization")
    if full_pct is None:
        return _why_no_gauge(member, "utilization")
    if full_pct < FULL_PCT:
        return None
    activities = ("sm", "tensor", "fp32", "dram")
    sm_pct, tensor_pct, fp32_pct, dram_pct = (_mean(member, f".{name}_activity") for name in activities)
    if sm_pct is None or tensor_pct is None or fp32_pct is None or dram_pct is None:
        return _why_no_gauge(member, "tensor_activity")
    # Few of the multiprocessors work, and those that do compute little beside that: shares are of all of them.
    computing_max_pct = NOT_COMPUTING_SHARE * sm_pct
    if max(tensor_pct, fp32_pct, dram_pct) > computing_max_pct:
        return None
    values: dict[str, Value] = {
        "utilization_pct": full_pct,
        "tensor_pct": tensor_pct,
        "fp32_pct": fp32_pct,
        "dram_pct": dram_pct,
    }
    return member.finding("gpu_full_but_not_computing", "bad", values, 100.0, reason("see_where_it_ran"))


@rule("member", worst="bad", on="accelerator")
def device_declared_not_used(member: Member) -> Outcome:
    """Find cells whose device showed no activity during the blocks."""
    busy_pct = _mean(member, ".utilization")
    if busy_pct is None:
        return _why_no_gauge(member, "utilization")
    if busy_pct > NOT_USED_MAX_PCT:
        return None
    values: dict[str, Value] = {"device": member.cell.device, "utilization_pct": busy_pct}
    return member.finding("device_declared_not_used", "bad", values, 100.0, reason("see_where_it_ran"))


def _share_pct(mark: Reason) -> float:
    share_pct = mark.values.get("share_pct")
    return share_pct if isinstance(share_pct, int | float) else 0.0  # of a profile that somebody else wrote


def _gauge(launch: Launch, suffix: str) -> float | None:
    """Return the mean of a board's sensor in a launch, the largest where it used several boards."""
    means = [of.mean for name, of in launch.sensors.items() if name.startswith(OF_BOARDS) and name.endswith(suffix)]
    return max(means, default=None)


def _over_launches(member: Member, suffix: str, summed_up: Callable[[list[float]], float]) -> float | None:
    means = [mean for launch in member.launches.values() if (mean := _gauge(launch, suffix)) is not None]
    return summed_up(means) if means else None


def _largest(member: Member, suffix: str) -> float | None:
    """Return the largest of the launches' means."""
    return _over_launches(member, suffix, max)


def _mean(member: Member, suffix: str) -> float | None:
    return _over_launches(member, suffix, statistics.fmean)


def _why_no_gauge(member: Member, sensor: str) -> Reason:
    """Return why no launch has a mean of that sensor."""
    for launch in member.launches.values():
        for name, why in launch.sensor_reasons.items():
            if name.endswith(f".{sensor}"):
                return why
    names = [report.name for report in member.profile.sensors if report.name.endswith(f".{sensor}")]
    return why_unread(member.profile, *names) if names else reason("not_recorded", what=sensor)


class _HeldBack(NamedTuple):
    """What one launch saw of one of its boards that the power cap held back."""

    share_pct: float  # of the time
    power_w: float
    power_max_w: float
    cap_w: float
    clock_mhz: float
    rated_mhz: float


def _held_back(member: Member, launch: Launch) -> Iterator[_HeldBack]:
    """Yield each board of a launch that its cap held back for long enough, by its own readings."""
    names = {sensor.name: sensor.device_id for sensor in member.profile.sensors if sensor.device_id}
    for board in _boards_of(member):
        shown = {
            name.split(".", 2)[-1]: of
            for name, of in launch.sensors.items()
            if any(name.startswith(known) for known, device_id in names.items() if device_id == board.device_id)
        }
        capped = (shown.get(name) for name in ("power_violation", "throttled.software_power_cap"))
        share_pct = max((of.mean for of in capped if of is not None), default=0.0)
        power, clock, cap_w = shown.get("power"), shown.get("frequency"), board.power_cap_w
        rated_mhz = board.clock_limit_mhz or board.clock_max_mhz
        if share_pct >= SLOWED_LEAST_PCT and power and clock and clock.mean and cap_w and rated_mhz:
            yield _HeldBack(share_pct, power.mean, power.max, cap_w, clock.mean, rated_mhz)


def _boards_of(member: Member) -> list[AcceleratorState]:
    ids = {device_id for launch in member.launches.values() for device_id in launch.device_ids}
    return [board for board in member.profile.state.before.accelerators() if board.device_id in ids]


def _each_board(audited: Audited, judge: Callable[[AcceleratorState], Finding | Reason | None]) -> Outcome:
    """Ask of every board that a launch used, as it was before and after the run; the findings, else what is missing."""
    launches = [launch for result in audited.results for launch in result.launches]
    ids = {device_id for launch in launches for device_id in launch.device_ids}
    span = audited.profile.state
    states = [*span.before.accelerators(), *(span.after.accelerators() if span.after is not None else ())]
    outcomes = [judge(board) for board in states if board.device_id in ids]
    if not outcomes:
        return audited.profile.identity.why_unknown("gpu")
    findings = {str(of.values["board"]): of for of in outcomes if isinstance(of, Finding)}
    return [*findings.values(), *(of for of in outcomes if isinstance(of, Reason))]


def _of_board(
    code: str, severity: Severity, values: dict[str, Value], remedy: Reason | None, profile: str = ""
) -> Finding:
    return Finding(code=code, severity=severity, values=values, remedy=remedy, profile=profile)
