"""A finished launch: its steps, what the sampler saw of its blocks, its joules, and what bounded its devices.

look │ idle │ workers start … workers end │ idle │ look

No worker is alive at a look, nor in the idle of a round with joules: what computes on a board then is another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from kit.compare.clean import DEVICE_OTHERS
from kit.devices import DEVICES
from kit.devices.gpu import SLOWED_LEAST_PCT, is_capped
from kit.profile.cell import Cell
from kit.profile.facts import Accelerator
from kit.profile.fields import Reason, reason
from kit.profile.instruments import NO_SENSOR, Energy, SensorSummary
from kit.profile.schema import Blocks, Launch
from kit.profile.store import timed_steps
from kit.profile.unfinished import SavedLaunch
from kit.runner.round_worker import RoundWorker
from kit.runner.warm_up_and_blocks import NO_STEPS
from kit.sensors.sampler import Sampled
from kit.stats.modes_and_trends import percentile_ns
from kit.stats.window_energy import Window

# How the name of a sensor ends that shows what slows a board; each reason has a name below it.
THROTTLED = ".throttled"

Boards = Mapping[str, Sequence[Accelerator]]  # by PCI bus id: as each was at the looks


class Idle(NamedTuple):
    """The stretches of a round in which no worker was alive."""

    before: Window
    after: Window


def look(cells: Iterable[Cell]) -> list[Accelerator]:
    """Return how the boards of the kinds of device of these cells are now."""
    return [state for kind in dict.fromkeys(cell.device for cell in cells) for state in DEVICES[kind].states()]


def boards_seen(*looks: Sequence[Accelerator]) -> Boards:
    """Return what some looks saw of each board."""
    seen: dict[str, list[Accelerator]] = {}
    for state in (state for states in looks for state in states if state.device_id is not None):
        seen.setdefault(str(state.device_id), []).append(state)
    return seen


def finished_launches(
    worker: RoundWorker, samples: Sampled | None, boards: Boards, idle: Idle | None = None
) -> Iterator[SavedLaunch]:
    """Yield the launches of a worker that has ended, as they are saved.

    Args:
        worker: of the round.
        samples: that were taken during the round; null: there is no sampled sensor.
        boards: of the machine, as they were before and after the round.
        idle: of the round, where it has joules.
    """
    for key, launch in worker.launches.items():
        step_ns = np.concatenate([*worker.steps[key], NO_STEPS])
        timed_ns = timed_steps(launch, step_ns)
        launch.p95_ns, launch.p99_ns = percentile_ns(timed_ns, 95), percentile_ns(timed_ns, 99)
        cell, long_block = worker.cell(launch.cell_key), worker.long_blocks.get(key)
        if samples is not None:
            if samples.failure is not None:
                launch.notes.append(samples.failure)
            _add_sampled(worker, launch, long_block, samples, boards, idle)
        if long_block is not None and not any(energy.kind == "steady" for energy in launch.energy):
            launch.energy.append(_unread(long_block, cell))
        states = [state for device_id in launch.device_ids for state in boards.get(device_id, ())]
        launch.notes += [*_throttled(launch.sensors), *_capped(states), *_shared(states)]  # each once, the gravest's
        yield SavedLaunch(launch=launch, step_ns=step_ns.tobytes())


def _add_sampled(  # noqa: PLR0917
    worker: RoundWorker, launch: Launch, long_block: Blocks | None, samples: Sampled, boards: Boards, idle: Idle | None
) -> None:
    """Add gauges, of what runs as people run it, and joules: of the launch's own devices alone."""
    cell = worker.cell(launch.cell_key)
    on_cpu = cell.device == "cpu"
    if on_cpu or launch.device_ids:
        samples = samples.for_devices(() if on_cpu else launch.device_ids)
    # An accelerator's other blocks wait for single steps, too, and are shorter than some gauges' period.
    windows = (launch.blocks if on_cpu or long_block is None else long_block).windows()
    if windows:
        launch.sensors = samples.summaries(windows)
        launch.sensor_reasons = samples.gauges_needing_longer_windows(windows)
    entries = list[Energy]()
    is_asked = worker.has_energy
    if long_block is not None:
        (steps,), (window,) = long_block.steps, long_block.windows()
        launch.long_block_readings = [] if on_cpu else samples.over_time(window)
        others = (long_block.counters.get(DEVICE_OTHERS) or [0])[0]
        entries += [
            _without_joules(entry, reason("device_shared", processes=others)) if others else entry
            for entry in samples.energy("steady", [window], steps * cell.batch, steps)
        ]
    if not cell.in_blocks and launch.gave_number and is_asked:
        steps = sum(launch.blocks.steps)
        entries += samples.energy(cell.traits.energy, launch.blocks.windows(), steps * cell.batch, steps)
    # What came before the end of the first step.
    phases = {phase.name: phase for phase in launch.phases}
    if idle is not None and is_asked and "build" in phases and "first_step" in phases:
        first = phases["first_step"]
        window = phases["build"].begin_ns, first.begin_ns + first.duration_ns
        entries += samples.energy("compile", [window], 0, 0)
    entries = [_on_board(_with_idle(entry, samples, idle), boards) for entry in entries]
    if worker.spec.hosts:
        entries = [_without_joules(entry, reason("several_hosts_energy")) for entry in entries]
    launch.energy += entries


def _with_idle(entry: Energy, samples: Sampled, idle: Idle | None) -> Energy:
    """Return the entry with what its sensor showed of idle before and after the round."""
    if idle is None:
        return replace(entry, idle_reason=reason("idle_not_measured"))
    windows = [samples.idle_w(window)[entry.sensor] for window in idle]
    shown = [None if isinstance(window, Reason) else window for window in windows]
    watts = [None if window is None else window.joules_j / window.window_ns * 1e9 for window in shown]
    return replace(
        entry,
        idle_before_w=watts[0],
        idle_after_w=watts[1],
        idle_error_fraction=max((window.error_fraction for window in shown if window is not None), default=None),
        idle_reason=next((window for window in windows if isinstance(window, Reason)), None),
    )


def _on_board(entry: Energy, boards: Boards) -> Energy:
    """Return the entry without its joules where others had a part in them, and with how many others there were."""
    states = boards.get(entry.device_id or "", ())
    known = [state.processes for state in states if state.processes is not None]
    entry = replace(entry, idle_processes=max(known, default=None))
    why = _why_not_its_joules(states)
    return entry if why is None else _without_joules(entry, why)


def _without_joules(entry: Energy, why: Reason) -> Energy:
    return replace(
        entry, joules_j=None, window_ns=None, updates=None, error_fraction=None, power_max_w=None, reason=why
    )


def _unread(long_block: Blocks, cell: Cell) -> Energy:
    """Return a long block that no sensor saw: an external meter may have."""
    (steps,), ((begin_ns, end_ns),) = long_block.steps, long_block.windows()
    return Energy(
        sensor=NO_SENSOR,
        joules_j=None,
        window_ns=None,
        samples=steps * cell.batch,
        block_ns=end_ns - begin_ns,
        reason=reason("meter_not_given"),
        begin_ns=begin_ns,
        steps=steps,
    )


def _why_not_its_joules(states: Sequence[Accelerator]) -> Reason | None:
    """Return why what a board drew is not a worker's alone; None where it is."""
    if any(state.mig for state in states):
        return reason("gpu_in_slices")
    return next(iter(_shared(states)), None)


def _throttled(sensors: Mapping[str, SensorSummary]) -> list[Reason]:
    shares = {name: summary.mean for name, summary in sensors.items() if name.endswith(THROTTLED)}
    worst = max(shares, key=lambda name: shares[name], default=None)
    if worst is None or shares[worst] < SLOWED_LEAST_PCT:
        return []
    causes = {name.removeprefix(f"{worst}."): summary.mean for name, summary in sensors.items() if f"{worst}." in name}
    listed = ", ".join(name.replace("_", " ") for name in sorted(causes, key=lambda name: -causes[name]))
    return [reason("device_throttled", share_pct=shares[worst], causes=listed)]


def _capped(states: Iterable[Accelerator]) -> list[Reason]:
    caps = [(state.power_cap_w or 0.0, state.power_cap_default_w or 0.0) for state in states if is_capped(state)]
    cap_w, default_w = min(caps, default=(0.0, 0.0))
    return [reason("power_capped", cap_w=cap_w, default_w=default_w)] if caps else []


def _shared(states: Iterable[Accelerator]) -> list[Reason]:
    processes = max((state.processes or 0 for state in states), default=0)
    return [reason("device_shared", processes=processes)] if processes else []
