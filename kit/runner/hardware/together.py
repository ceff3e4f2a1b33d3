"""Checks of members beside each other: memory for all, what stopped members cost, shares, idle power, parity."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from msgspec.structs import replace

from kit.compare.parity import max_relative_difference
from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.reason import Reason, reason
from kit.runner.hardware.alone import BLOCK_S, BLOCKS
from kit.runner.hardware.check import Check, beside, judged, not_checked, until_decided
from kit.runner.hardware.trial import Bench, Trial
from kit.runner.round import GPU_SHARE
from kit.sensors.protocol import Sensor
from kit.stats.estimate import Estimate, over_rounds
from kit.workloads.parity import parity_tolerance

# As many as a group has, but for its largest.
MEMBERS = 3
SMALL_SHARE, LARGE_SHARE = 0.3, 0.9
BESIDE_LIMIT_PCT = 1.0
# Each pass starts two members anew; a further one is begun within so long.
BESIDE_DECIDE_S = 60.0
# Two processes of one cell can differ by 5 % for as long as they live (docs/explanation/method.md); other kernels more.
SHARE_LIMIT_PCT = 10.0
# Of a board's idle power with one context.
IDLE_LIMIT = 1.1
IDLE_S, IDLE_READS = 2.0, 20


def together_checks(bench: Bench, cells: Sequence[Cell], power: Sequence[Sensor]) -> list[Check]:
    """Return the checks of MEMBERS members of these cells, which may be alive together; the first is looked at."""
    bench.begins("several workers at once")
    first, *others = (list(cells) * MEMBERS)[:MEMBERS]
    idle_w = {0: _idle_w(power)}
    no_room: list[Check] = []
    with Trial(bench, [first], share=1 / MEMBERS) as trial:
        if (why := trial.ready()) is not None:
            return [_no_room(first.backend, why)]
        idle_w[1] = _idle_w(power)

        def beside_stopped(times: int) -> Estimate | None:
            before = over_rounds(trial.logs(times * BLOCKS, BLOCK_S))
            with ExitStack() as stopped:
                for other in others:
                    stopped_trial = stopped.enter_context(Trial(bench, [other], share=1 / MEMBERS))
                    if (why := stopped_trial.ready()) is not None:
                        no_room.append(_no_room(other.backend, why))
                        return None
                if MEMBERS not in idle_w:
                    idle_w[MEMBERS] = _idle_w(power)
                amid = over_rounds(trial.logs(times * BLOCKS, BLOCK_S))
            return beside(before, amid, over_rounds(trial.logs(times * BLOCKS, BLOCK_S)))

        check = until_decided("beside_stopped", first.backend, beside_stopped, BESIDE_LIMIT_PCT, BESIDE_DECIDE_S)
    if no_room:
        return [*no_room, *_idle(idle_w)]
    return [judged("members_together", first.backend, is_right=True, members=MEMBERS), check, *_idle(idle_w)]


def _no_room(backend: str, why: Reason) -> Check:
    """Return that a member failed which has been measured alone: its share of the memory is too small, or all is."""
    return Check(code="members_together", subject=backend, status="fail", reason=why)


def _idle_w(power: Sequence[Sensor]) -> list[float]:
    """Return the mean power of each board, in watts, over IDLE_S."""
    readings: list[list[float]] = [[] for _ in power]
    for _ in range(IDLE_READS):
        for of_sensor, sensor in zip(readings, power, strict=True):
            if (value := sensor.read().value) is not None:
                of_sensor.append(value)
        time.sleep(IDLE_S / IDLE_READS)
    return [statistics.fmean(of_sensor) for of_sensor in readings if of_sensor]


def _idle(idle_w: Mapping[int, Sequence[float]]) -> list[Check]:
    if not idle_w[0]:
        return [not_checked("idle_power", "boards", reason("no_sensor"))]
    values = {f"members_{count}_w": sum(of_boards) for count, of_boards in idle_w.items()}
    # A board that has gone away since has fewer readings.
    if MEMBERS not in idle_w or len({len(of_boards) for of_boards in idle_w.values()}) > 1:
        return [not_checked("idle_power", "boards", reason("no_number"))]
    # Of each board: the sum of eight would hide one.
    is_right = all(many <= IDLE_LIMIT * alone for many, alone in zip(idle_w[MEMBERS], idle_w[1], strict=True))
    return [judged("idle_power", "boards", is_right, **values)]


def share_checks(bench: Bench, cell: Cell) -> list[Check]:
    """Return whether a member with a small share of the memory takes the steps of one with a large share, in turns."""
    bench.begins("memory fractions")
    with (
        Trial(bench, [cell], share=SMALL_SHARE / GPU_SHARE) as small,
        Trial(bench, [cell], share=LARGE_SHARE / GPU_SHARE) as large,
    ):
        for trial in (small, large):
            if (why := trial.ready()) is not None:
                return [not_checked("memory_share", cell.backend, why)]

        def in_turns(times: int) -> Estimate | None:
            turns = [(small.logs(1, BLOCK_S), large.logs(1, BLOCK_S)) for _ in range(times * BLOCKS)]
            return over_rounds([sum(of_small) - sum(of_large) for of_small, of_large in turns if of_small and of_large])

        return [until_decided("memory_share", cell.backend, in_turns, SHARE_LIMIT_PCT)]


def parity_checks(bench: Bench, cells: Sequence[Cell]) -> list[Check]:
    """Return whether each network's first losses on the device are those on the CPU; the cells are of one backend."""
    bench.begins(f"parity of {cells[0].backend}")
    on_cpu = [replace(cell, device="cpu") for cell in cells]
    with Trial(bench, cells, proves=True) as trial:
        launches = [trial.prove(cell) for cell in cells]
    with Trial(bench, on_cpu, proves=True) as trial:
        launches_cpu = [trial.prove(cell) for cell in on_cpu]
    pairs = zip(cells, launches, launches_cpu, strict=True)
    return [_parity(cell, launch, of_cpu) for cell, launch, of_cpu in pairs]


def _parity(cell: Cell, launch: Launch, of_cpu: Launch) -> Check:
    subject = f"{cell.workload} · {cell.backend}"
    for each in (launch, of_cpu):
        if each.failure is not None or each.parity is None:
            return not_checked("parity", subject, reason("no_number") if each.failure is None else each.failure.reason)
    assert launch.parity is not None
    assert of_cpu.parity is not None
    difference = max_relative_difference(launch.parity.losses, of_cpu.parity.losses)
    if difference is None:
        return not_checked("parity", subject, reason("no_number"))
    tolerance = parity_tolerance(cell.precision, like_hardware=False)
    return judged("parity", subject, difference <= tolerance, difference=difference, tolerance=tolerance)
