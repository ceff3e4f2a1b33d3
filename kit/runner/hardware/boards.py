"""Checks of boards and their sensors, without a framework."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from kit.clock import now_ns
from kit.devices.limits import is_capped
from kit.profile.identity import Accelerator
from kit.profile.reason import reason
from kit.runner.hardware.check import Check, judged, not_checked
from kit.sensors.nvml import update_period_ns
from kit.sensors.protocol import Sensor
from kit.sensors.sampler import PERIOD_NS

READS = 20
# All sensors are read in one tick of the sampler; a tenth of its period leaves room for a slow one.
TICK_SHARE = 0.1
# Of the period that a sensor is taken to have.
PERIOD_SLACK = 1.5
PERIOD_LIMIT_S = 2.5


def board_checks(states: Iterable[Accelerator]) -> list[Check]:
    """Return what bounds each board: a power cap, slices, one process at a time, other processes."""
    checks = []
    for state in states:
        capped = is_capped(state)
        if capped is None:
            checks.append(not_checked("board_power_cap", state.name, reason("nvml_not_supported")))
        else:
            caps = {"cap_w": state.power_cap_w or 0.0, "default_w": state.power_cap_default_w or 0.0}
            checks.append(judged("board_power_cap", state.name, not capped, **caps))
        facts = (
            ("board_slices", state.mig, lambda mig: not mig),
            ("board_exclusive", state.compute_mode, lambda mode: mode == "default"),
            ("board_processes", state.processes, lambda count: not count),
        )
        for code, value, is_right in facts:
            if value is None:
                checks.append(not_checked(code, state.name, reason("nvml_not_supported")))
            else:
                checks.append(judged(code, state.name, is_right(value), found=value))
    return checks


def sensor_checks(sensors: Sequence[Sensor]) -> list[Check]:
    """Return what reading every sensor costs, and how often each of energy, power and utilization is fresh."""
    available = [sensor for sensor in sensors if sensor.is_available]
    if not available:
        return [not_checked("sensor_reads", "sampler", reason("no_sensor"))]
    costs_ns = {sensor.report.name: _cost_ns(sensor) for sensor in available}
    tick_ns, dearest = sum(costs_ns.values()), max(costs_ns, key=lambda name: costs_ns[name])
    checks = [
        judged(
            "sensor_reads", "sampler", tick_ns <= TICK_SHARE * PERIOD_NS,
            tick_ns=tick_ns, dearest=dearest, dearest_ns=costs_ns[dearest],
        )
    ]  # fmt: skip
    for sensor in available:
        if sensor.report.quantity in ("energy", "power", "utilization"):
            checks.append(_period(sensor))
    return checks


def _cost_ns(sensor: Sensor) -> float:
    costs_ns = []
    for _ in range(READS):
        begin_ns = now_ns()
        sensor.read()
        costs_ns.append(now_ns() - begin_ns)
    return statistics.median(costs_ns)


def _period(sensor: Sensor) -> Check:
    name, assumed_ns = sensor.report.name, sensor.report.update_period_ns
    period_ns = update_period_ns(lambda: sensor.read().value, PERIOD_LIMIT_S)
    if period_ns is None:
        return not_checked("sensor_period", name, reason("value_did_not_change", limit_s=PERIOD_LIMIT_S))
    if assumed_ns is None:
        return judged("sensor_period", name, is_right=True, period_ns=period_ns)
    return judged(
        "sensor_period", name, period_ns <= PERIOD_SLACK * assumed_ns, period_ns=period_ns, assumed_ns=assumed_ns
    )
