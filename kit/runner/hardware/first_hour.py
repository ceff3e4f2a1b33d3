"""The first hour on hardware: what only a board can tell, each thing once, in at most twenty minutes.

boards ─ sensors ─ each framework alone, and under load ─ members beside each other ─ shares of memory ─ parity
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from kit.profile.identity import Accelerator, Identity
from kit.profile.launch import Launch
from kit.profile.reason import reason
from kit.profile.schema import Kit
from kit.runner.hardware.alone import alone_checks
from kit.runner.hardware.boards import board_checks, sensor_checks
from kit.runner.hardware.check import Check, judged, not_checked
from kit.runner.hardware.load import load_checks, network_cells, product_cells
from kit.runner.hardware.response import RESPONDING, Response
from kit.runner.hardware.together import parity_checks, share_checks, together_checks
from kit.runner.hardware.trial import Bench
from kit.sensors.catalog import sampled_sensors

# Of the plan's networks: it is small, so that waits and turns show most.
SHOWN_ON = "mlp"
# A step without a wait of its own takes no longer than one with; blocks of a disturbed machine may lie so far apart.
LATENCY_SLACK = 1.2


class FirstHour(msgspec.Struct, kw_only=True):
    """What anyone with a board can send; it grows check by check."""

    schema: str = "steadykit.hardware/1.1"
    created: str
    kit: Kit
    device: str
    identity: Identity
    boards: list[Accelerator]
    checks: list[Check] = []
    launches: list[Launch] = []
    responses: list[Response] = []  # of sensors to a load that begins and ends; up to 1.0 not recorded
    interrupted: bool = False


def first_hour(bench: Bench, device: str, keep: Callable[[FirstHour], None]) -> FirstHour:
    """Run every check of the plan's cells, which are trainings on the device; an interrupt ends with what there is.

    `keep` is given what there is after each part: nothing of it is lost, whatever the next one does.
    """
    plan = bench.plan
    record = FirstHour(
        created=plan.created, kit=plan.kit, device=device, identity=plan.identity, boards=list(bench.boards)
    )
    try:
        for _ in _parts(bench, record):
            keep(record)
    except KeyboardInterrupt:
        record.interrupted = True
    keep(record)
    return record


def _parts(bench: Bench, record: FirstHour) -> Iterator[None]:
    """Add to the record, and yield after each part of it."""
    record.checks += board_checks(bench.boards)
    bench.begins("devices and sensors")
    sensors = [sensor for sensor in sampled_sensors() if sensor.report.device_id is not None]
    record.checks += sensor_checks(sensors)
    yield
    responding = [sensor for sensor in sensors if sensor.is_available and sensor.report.quantity in RESPONDING]
    measured, alone = [], []
    for cells in bench.cells().values():
        cell = next(cell for cell in cells if cell.workload == SHOWN_ON)
        checks, launch = alone_checks(bench, cell)
        record.checks += checks
        yield
        if launch is None:
            continue
        measured.append(cell)
        alone.append(launch)
        record.launches.append(launch)
        for loads in (product_cells(cell), network_cells(cell)):
            # A sensor's response is not a framework's: once is enough.
            checks, launch, responses = load_checks(bench, loads, () if record.responses else responding)
            record.checks += checks
            record.responses += responses
            record.launches += [] if launch is None else [launch]
            yield
    record.checks.append(_ranks(alone))
    if not measured:
        return
    power = [sensor for sensor in sensors if sensor.report.quantity == "power" and sensor.is_available]
    record.checks += together_checks(bench, measured, power)
    yield
    record.checks += share_checks(bench, measured[0])
    yield
    for cell in measured:
        record.checks += parity_checks(bench, bench.cells()[cell.backend])
        yield


def _ranks(launches: Sequence[Launch]) -> Check:
    """Tell both orders of the frameworks; a step that is not waited for by itself takes no longer than one that is."""
    timed = [launch for launch in launches if launch.blocks.steps and launch.blocks.median_ns[0]]
    if len(timed) < 2:  # noqa: PLR2004 - one and another
        return not_checked("ranks", "frameworks", reason("one_framework"))
    latencies_ns = {_backend(launch): float(launch.blocks.median_ns[0] or 0) for launch in timed}
    steps_ns = {_backend(launch): sum(launch.blocks.duration_ns) / sum(launch.blocks.steps) for launch in timed}
    is_right = all(steps_ns[name] <= LATENCY_SLACK * latencies_ns[name] for name in steps_ns)
    orders = [", ".join(sorted(times_ns, key=lambda name: times_ns[name])) for times_ns in (latencies_ns, steps_ns)]
    return judged("ranks", "frameworks", is_right, by_latency=orders[0], by_step=orders[1])


def _backend(launch: Launch) -> str:
    return launch.cell_key.split("/")[1]
