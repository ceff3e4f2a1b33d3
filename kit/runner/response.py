"""How a device's sensors respond to a load that begins and ends: what they read, and what that shows of each.

idle │ load │ idle │ load │ idle │ load │ idle      read every 20 ms, in a thread beside a worker of matrix products
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median

from msgspec.structs import replace

from kit.profile.fields import Reason, reason
from kit.profile.instruments import SensorReport, SensorResponse
from kit.profile.schema import Group
from kit.profile.unfinished import RunPlan
from kit.runner.interrupt import StopFlag
from kit.runner.round_worker import RoundWorker
from kit.runner.worker_processes import Ranks
from kit.runner.worker_spec import worker_spec
from kit.sensors.sources import Sensor, now_ns, sampled_sensors
from kit.stats.step_response import step_response
from kit.stats.window_energy import Refusal, Window
from kit.suites.groups import WorkerPlan
from kit.workloads.device_operations import MATMUL

RESPONDING = ("energy", "power", "utilization", "frequency")
# Loads begin and end at other moments of a sensor's period: six edges show a lag to a sixth of it. Both stretches are
# longer than a mean over a second, which GPUs have.
LOADS, LOAD_S, IDLE_S = 3, 4.0, 3.0
# An energy counter takes 4 ms to answer; known GPUs renew it each 20 to 100 ms.
READ_EVERY_S = 0.02
# A reading ends within milliseconds: what takes longer hangs in a driver.
READ_LIMIT_S = 2.0

Readings = list[tuple[int, float | None, int]]  # when, the value (None: the read failed), and how long the read took


def sensor_responses(plan: RunPlan, stop: StopFlag) -> list[SensorResponse]:
    """Load the device of a plan's matrix product LOADS times; return what each sensor of it made of that.

    Raises:
        KeyboardInterrupt: it was asked for.
    """
    cell = next((cell for cell in plan.cells if cell.workload == MATMUL.name), None)
    sensors = [
        sensor
        for sensor in sampled_sensors()
        if sensor.is_available and sensor.report.device_id is not None and sensor.report.quantity in RESPONDING
    ]
    if cell is None or not sensors:
        return []
    held = WorkerPlan(cell.key, [cell])
    spec = worker_spec(plan, held, number=1, memory_fraction=1.0)
    group = Group(key=cell.key, cells=[cell.key], baseline=cell.key)
    worker = RoundWorker(held, spec, Ranks(spec, stop), plan.suite.plan, [group], 1)
    launch, loads = worker.launches[cell.key, group.key], list[Window]()
    try:
        worker.prepare()
        worker.build(cell.key, group.key)
        worker.warm_up(cell.key, group.key)
        ids = launch.device_ids
        sensors = [sensor for sensor in sensors if not ids or sensor.report.device_id in ids]
        with _read(sensors) as readings:
            stop.sleep(IDLE_S)
            while len(loads) < LOADS and (blocks := worker.long_block(cell.key, group.key, LOAD_S)) is not None:
                loads += blocks.windows()
                stop.sleep(IDLE_S)
    finally:
        worker.end()
    why = reason("no_number") if launch.failure is None else launch.failure.reason
    return [
        response_of(sensor.report, cell.key, loads, list(sensor_readings), why)
        for sensor, sensor_readings in zip(sensors, readings, strict=True)
    ]


def response_of(
    report: SensorReport, cell_key: str, loads: list[Window], readings: Readings, why: Reason
) -> SensorResponse:
    """Return what a sensor made of loads; `why`: what it is to say where there are none."""
    response = SensorResponse(
        sensor=report.name,
        device_id=report.device_id,
        cell=cell_key,
        loads=loads,
        at_ns=[at_ns for at_ns, *_ in readings],
        values=[value for _, value, _ in readings],
    )
    if not loads or not readings:
        return replace(response, reason=why)
    response = replace(response, read_ns=round(median(read_ns for *_, read_ns in readings)))
    shown = step_response(response.at_ns, response.values, loads, report.update_period_ns, is_counter=report.counter)
    if isinstance(shown, Refusal):
        return replace(response, reason=Reason(code=shown.code, values={**shown.values}))
    return replace(response, **shown._asdict())


@contextmanager
def _read(sensors: Sequence[Sensor]) -> Iterator[list[Readings]]:
    """Read the sensors again and again within; the lists grow meanwhile."""
    readings: list[Readings] = [[] for _ in sensors]
    ends = threading.Event()

    def read() -> None:
        while not ends.wait(READ_EVERY_S):
            for sensor, sensor_readings in zip(sensors, readings, strict=True):
                begin_ns = now_ns()
                at_ns, value = sensor.read()
                sensor_readings.append((at_ns, value, now_ns() - begin_ns))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield readings
    finally:
        ends.set()
        thread.join(READ_LIMIT_S)
