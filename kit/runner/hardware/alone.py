"""Checks of one framework at a time: its waits, its device's clock, and where its targets lie."""

from __future__ import annotations

from collections.abc import Callable

from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.reason import reason
from kit.runner.hardware.check import NO_NUMBER, Check, judged, not_checked
from kit.runner.hardware.trial import Bench, Trial
from kit.worker.pipelined import WAIT_SHARE

BLOCK_S, BLOCKS = 0.25, 12
DEVICE_CLOCK_LIMIT_PCT = 1.0


def alone_checks(bench: Bench, cell: Cell) -> tuple[list[Check], Launch | None]:
    """Return the checks of one framework, and its launch; null where it cannot be measured."""
    bench.begins(cell.backend)
    with Trial(bench, [cell]) as trial:
        why = trial.ready()
        if why is not None:
            return [not_checked("framework", cell.backend, why)], None
        trial.logs(BLOCKS, BLOCK_S)
        launch = trial.concluded(None)
    checks: list[Callable[[str, Launch], Check]] = [_wait, _device_clock, _targets]
    return [check(cell.backend, launch) for check in checks], launch


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
