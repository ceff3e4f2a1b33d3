"""Checks under a load that loads the board: a matrix product, and the largest network that fits.

response, of the first product: idle │ load │ idle │ load │ idle …     what power, clock and energy counter show of it
bursts │ a block of 12 s │ bursts, beside the sampler; of the network, blocks with and without it
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from kit.backends.catalog import CATALOG
from kit.devices.limits import reaches_cap
from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.reason import Reason, reason
from kit.runner.hardware.alone import BLOCK_S, BLOCKS
from kit.runner.hardware.check import NO_NUMBER, Check, beside, judged, not_checked, until_decided
from kit.runner.hardware.response import Response, responses
from kit.runner.hardware.trial import Bench, Trial, step_ns_of
from kit.sensors.protocol import Sensor
from kit.sensors.sampler import Sampling
from kit.stats.estimate import Estimate, estimate, over_rounds
from kit.workloads.operations import MATMUL

# Of a matrix product: it brings an H100 to its power cap. A board of little memory takes the smaller one.
PRODUCT_SIZES = (8192, 4096)
# 100 million weights, so that products bound a step; the batch is halved until weights, states and outputs fit.
NETWORK, NETWORK_PARAMETERS = "transformer", {"width": 1024, "depth": 8, "heads": 16, "length": 28}
NETWORK_BATCHES = (1024, 512, 256, 128, 64, 32)
BURST_S = 0.125
# An energy sensor needs a hundred updates and ten seconds.
LONG_S = 12.0
# Sampler on and off in turn.
SAMPLER_PAIRS = 8
SAMPLER_LIMIT_PCT = 0.5
BURST_LIMIT_PCT = 2.0
ENERGY_LIMIT_PCT = 5.0
AT_CAP = "software power cap"


def product_cells(cell: Cell) -> list[Cell]:
    """Return the matrix products of a cell's framework, the largest first, in the precision that draws most."""
    precision = "bfloat16" if "bfloat16" in CATALOG[cell.backend].precisions else "float32"
    operation = replace(cell, workload=MATMUL.name, task="infer", batch=1, precision=precision, feed="device")
    return [replace(operation, parameters={"n": size}) for size in PRODUCT_SIZES]


def network_cells(cell: Cell) -> list[Cell]:
    """Return the large network of a cell's framework, its largest batch first."""
    network = replace(cell, workload=NETWORK, parameters=NETWORK_PARAMETERS)
    return [replace(network, batch=batch) for batch in NETWORK_BATCHES]


def load_checks(
    bench: Bench, cells: Sequence[Cell], responding: Sequence[Sensor] = ()
) -> tuple[list[Check], Launch | None, list[Response]]:
    """Return the checks under the first of these loads that fits, its launch, and how sensors responded to it."""
    why: Reason = NO_NUMBER
    for cell in cells:
        subject = f"{cell.workload} · {cell.backend}"
        bench.begins(subject)
        with Trial(bench, [cell]) as trial:
            why_not = trial.ready()
            if why_not is None:
                return _checks(bench, trial, cell, subject, responding)
            why = why_not
        if why.code != "out_of_device_memory":
            break
    return [not_checked("framework", subject, why)], None, []


def _checks(
    bench: Bench, trial: Trial, cell: Cell, subject: str, responding: Sequence[Sensor]
) -> tuple[list[Check], Launch, list[Response]]:
    answers = responses(bench, trial, cell, responding) if responding else None
    sampling = Sampling.start(bench.plan.sensors)
    try:
        if sampling is not None:
            sampling.wait_for_first()
        checks = [until_decided("bursts", subject, lambda times: _bursts(trial, times), BURST_LIMIT_PCT)]
    finally:
        samples = None if sampling is None else sampling.stop()
    if cell.workload == NETWORK:
        checks.append(_sampler(bench, trial, subject))
    launch = trial.concluded(samples)
    checks += [_throttled(bench, subject, launch), *_energy(subject, launch)]
    if answers is None:
        return checks, launch, []
    of_board = answers.of_boards(launch.device_ids)
    return [*checks, *of_board.checks()], launch, of_board.responses


def _bursts(trial: Trial, times: int) -> Estimate | None:
    """Compare bursts before and after a long block with that."""
    before = over_rounds(trial.logs(times * BLOCKS, BURST_S))
    long_ns = step_ns_of(trial.load(LONG_S))
    after = over_rounds(trial.logs(times * BLOCKS, BURST_S))
    if before is None or long_ns is None:
        return None
    apart = beside(before, estimate(math.log(long_ns), 0.0, before.df, before.count), after)
    return None if apart is None else estimate(-apart.mean_log, apart.se_log, apart.df, apart.count)


def _sampler(bench: Bench, trial: Trial, subject: str) -> Check:
    """Compare blocks with the sampler beside them and without."""
    if not any(report.sampled and report.status != "unavailable" for report in bench.plan.sensors):
        return not_checked("sampler_cost", subject, reason("no_sensor"))

    def pairs(times: int) -> Estimate | None:
        return over_rounds([log for pair in range(times * SAMPLER_PAIRS) for log in _with_sampler(bench, trial, pair)])

    return until_decided("sampler_cost", subject, pairs, SAMPLER_LIMIT_PCT)


def _with_sampler(bench: Bench, trial: Trial, pair: int) -> list[float]:
    """Return how much longer a step took with the sampler, as a logarithm; nothing where a block failed."""
    # Which comes first alternates: what warms up or drifts is no cost of the sampler.
    off = trial.logs(1, BLOCK_S) if pair % 2 else []
    sampling = Sampling.start(bench.plan.sensors)
    if sampling is not None:
        sampling.wait_for_first()
    on = trial.logs(1, BLOCK_S)
    if sampling is not None:
        sampling.stop()
    off = off or trial.logs(1, BLOCK_S)
    return [with_it - without for with_it, without in zip(on, off, strict=False)]


def _throttled(bench: Bench, subject: str, launch: Launch) -> Check:
    """Judge what slowed the board: a load may bring it to its power cap, and nothing else."""
    mark = next((mark for mark in launch.notes if mark.code == "device_throttled"), None)
    if mark is not None:
        is_right = mark.values.get("causes") == AT_CAP and _reaches_cap(bench, launch)
        return judged("board_throttled", subject, is_right, **mark.values)
    if not any(name.endswith(".throttled") for name in launch.sensors):
        return not_checked("board_throttled", subject, NO_NUMBER)
    return judged("board_throttled", subject, is_right=True, share_pct=0.0, causes="")


def _reaches_cap(bench: Bench, launch: Launch) -> bool:
    """Whether a board of a launch drew nearly what it may."""
    caps_w = {state.device_id: state.power_cap_w for state in bench.boards}
    powers = [sensor for sensor in bench.plan.sensors if sensor.quantity == "power" and sensor.name in launch.sensors]
    return any(
        reaches_cap(launch.sensors[sensor.name].max, cap_w)
        for sensor in powers
        if (cap_w := caps_w.get(sensor.device_id)) is not None
    )


def _energy(subject: str, launch: Launch) -> list[Check]:
    """Compare each board's counter with its integrated power."""
    checks = []
    joules_j = {energy.sensor: energy for energy in launch.energy if energy.kind == "steady"}
    for name, counter in joules_j.items():
        power = joules_j.get(f"{name.removesuffix('.energy')}.power")
        if not name.endswith(".energy") or power is None:
            continue
        about = f"{name} · {subject}"
        powers = [
            None if of.joules_j is None or not of.window_ns else of.joules_j / of.window_ns * 1e9
            for of in (counter, power)
        ]
        if powers[0] is None or powers[1] is None:
            checks.append(not_checked("energy_counter", about, counter.reason or power.reason or NO_NUMBER))
        else:
            is_right = abs(powers[0] / powers[1] - 1) <= ENERGY_LIMIT_PCT / 100
            checks.append(judged("energy_counter", about, is_right, counter_w=powers[0], power_w=powers[1]))
    return checks or [not_checked("energy_counter", subject, reason("no_energy_counter"))]
