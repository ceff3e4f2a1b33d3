"""Checks of one framework at a time: its waits, its device's clock, bursts, joules, what the sampler costs it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.reason import reason
from kit.runner.hardware.check import Check, judged, not_checked, within
from kit.runner.hardware.trial import Bench, Trial
from kit.sensors.sampler import Sampling
from kit.worker.pipelined import WAIT_SHARE

BLOCK_S, BURST_S = 0.25, 0.125
BLOCKS = 12
# An energy sensor needs a hundred updates and ten seconds.
LONG_S = 12.0
# Sampler on and off in turn.
SAMPLER_PAIRS = 8
SAMPLER_LIMIT_PCT = 0.5
BURST_LIMIT_PCT = 2.0
DEVICE_CLOCK_LIMIT_PCT = 1.0
ENERGY_LIMIT_PCT = 5.0
NO_NUMBER = reason("no_number")


def alone_checks(bench: Bench, cell: Cell) -> tuple[list[Check], Launch | None]:
    """Return the checks of one framework, and its launch; null where it cannot be measured."""
    bench.begins(cell.backend)
    with Trial(bench, [cell]) as trial:
        why = trial.ready()
        if why is not None:
            return [not_checked("framework", cell.backend, why)], None
        bursts = trial.logs(BLOCKS, BURST_S)
        sampling = Sampling.start(bench.plan.sensors)
        try:
            if sampling is not None:
                sampling.wait_for_first()
            long_ns = trial.long_step_ns(LONG_S)
        finally:
            samples = None if sampling is None else sampling.stop()
        sampler = _sampler(bench, trial)
        launch = trial.concluded(samples)
    checks: list[Callable[[str, Launch], Check]] = [_wait, _device_clock, _targets, _throttled]
    return [
        *(check(cell.backend, launch) for check in checks),
        _bursts(cell.backend, bursts, long_ns),
        sampler,
        *_energy(cell.backend, launch),
    ], launch


def _sampler(bench: Bench, trial: Trial) -> Check:
    """Compare blocks with the sampler beside them and without."""
    logs = []
    for pair in range(SAMPLER_PAIRS):
        # Which comes first alternates: what warms up or drifts is no cost of the sampler.
        off = trial.logs(1, BLOCK_S) if pair % 2 else []
        sampling = Sampling.start(bench.plan.sensors)
        if sampling is None:
            return not_checked("sampler_cost", trial.backend, reason("no_sensor"))
        sampling.wait_for_first()
        on = trial.logs(1, BLOCK_S)
        sampling.stop()
        off = off or trial.logs(1, BLOCK_S)
        logs += [with_it - without for with_it, without in zip(on, off, strict=False)]
    return within("sampler_cost", trial.backend, logs, SAMPLER_LIMIT_PCT)


def _wait(backend: str, launch: Launch) -> Check:
    """Judge what an empty wait adds to a step of a pipelined group."""
    blocks, wait_ns = launch.blocks, launch.empty_wait_ns
    if wait_ns is None or not blocks.per_wait or not sum(blocks.steps):
        return not_checked("wait", backend, NO_NUMBER)
    step_ns, per_wait = sum(blocks.duration_ns) / sum(blocks.steps), blocks.per_wait[-1]
    share = wait_ns / (per_wait * step_ns)
    return judged("wait", backend, share <= WAIT_SHARE, wait_ns=wait_ns, per_wait=per_wait, share_pct=100 * share)


def _device_clock(backend: str, launch: Launch) -> Check:
    events = launch.device_events
    if events is None or not events.device_ns:
        return not_checked("device_clock", backend, reason("no_device_events"))
    apart_pct = 100 * (events.host_ns / events.device_ns - 1)
    is_right = abs(apart_pct) <= DEVICE_CLOCK_LIMIT_PCT
    return judged("device_clock", backend, is_right, host_ns=events.host_ns, device_ns=events.device_ns)


def _targets(backend: str, launch: Launch) -> Check:
    place = launch.settings.get("targets")
    if place is None:
        return not_checked("targets", backend, NO_NUMBER)
    return judged("targets", backend, "cpu" not in place.lower(), place=place)


def _throttled(backend: str, launch: Launch) -> Check:
    mark = next((mark for mark in launch.marks if mark.code == "board_throttled"), None)
    if mark is not None:
        return judged("board_throttled", backend, is_right=False, **mark.values)
    if not any(name.endswith(".throttled") for name in launch.sensors):
        return not_checked("board_throttled", backend, NO_NUMBER)
    return judged("board_throttled", backend, is_right=True, share_pct=0.0, causes="")


def _bursts(backend: str, bursts: Sequence[float], long_ns: float | None) -> Check:
    if long_ns is None:
        return not_checked("bursts", backend, NO_NUMBER)
    return within("bursts", backend, [log - math.log(long_ns) for log in bursts], BURST_LIMIT_PCT)


def _energy(backend: str, launch: Launch) -> list[Check]:
    """Compare each board's counter with its integrated power."""
    checks = []
    joules_j = {energy.sensor: energy for energy in launch.energy if energy.of == "steady"}
    for name, counter in joules_j.items():
        power = joules_j.get(f"{name.removesuffix('.energy')}.power")
        if not name.endswith(".energy") or power is None:
            continue
        subject = f"{name} · {backend}"
        powers = [
            None if of.joules_j is None or not of.window_ns else of.joules_j / of.window_ns * 1e9
            for of in (counter, power)
        ]
        if powers[0] is None or powers[1] is None:
            checks.append(not_checked("energy_counter", subject, counter.reason or power.reason or NO_NUMBER))
        else:
            is_right = abs(powers[0] / powers[1] - 1) <= ENERGY_LIMIT_PCT / 100
            checks.append(judged("energy_counter", subject, is_right, counter_w=powers[0], power_w=powers[1]))
    return checks or [not_checked("energy_counter", backend, reason("no_energy_counter"))]
