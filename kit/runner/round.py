"""One round of a bundle: fresh members for every process, warmed up alone, taking turns in blocks, each then finished.

start A │ start B │ start C      each alone, the others stopped, in random order
group   │ warm up C │ warm up A │ warm up B │ B A C │ A C B │ … cycles, in random order │ long blocks for energy
finish A │ finish B │ finish C
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kit.profile.cell import Cell, Variant
from kit.profile.reason import Reason
from kit.profile.schema import Group
from kit.profile.unfinished import KeptLaunch, RunPlan
from kit.runner.launchers.protocol import Launcher, MemberRequest
from kit.runner.live_member import LiveMember
from kit.runner.stop import StopFlag
from kit.runner.turns import exclusive_device, lack_of_memory
from kit.sensors.sampling import Sampling
from kit.suites.plan import Bundle, Process
from kit.worker.messages import Prepare, ProgramRequest


class Watcher(Protocol):
    """Whoever shows progress; called between blocks only."""

    def starting(self, process: Process) -> None:
        """A member is about to start."""

    def block_done(self, cell: Cell) -> None:
        """A block of `cell` has ended."""


class Context(NamedTuple):
    """What the rounds of a run have in common.

    Attributes:
        memory_b: process name -> resident bytes that it was seen with; rounds add to it.
    """

    plan: RunPlan
    launcher: Launcher
    watcher: Watcher
    stop: StopFlag
    memory_b: dict[str, int]


class _LackOfMemoryError(Exception):
    def __init__(self, why: Reason) -> None:
        super().__init__(why.code)
        self.why = why


def run_round(context: Context, bundle: Bundle, number: int) -> list[KeptLaunch]:
    """Measure one round; return a launch for every cell of every group, failed ones included.

    Raises:
        KeyboardInterrupt: the round is not whole; its members have been killed.
        OSError: no room for a member's files.
    """
    draw = random.Random(f"{context.plan.suite.seed}/{number}/{bundle.groups[0].key}")
    order = draw.sample(bundle.processes, len(bundle.processes))
    why = exclusive_device([cell for process in order for cell in process.cells]) if len(order) > 1 else None
    sampling = Sampling.start(context.plan.sensors)
    try:
        members = [] if why is not None else _in_blocks(context, bundle, number, order, draw)
    except _LackOfMemoryError as lack:
        members, why = [], lack.why
    except BaseException:
        if sampling is not None:
            sampling.stop()
        raise
    try:
        if why is not None:
            members = [_whole(context, bundle, number, process, why, draw) for process in order]
    finally:
        samples = sampling.stop() if sampling is not None else None
    records = [record for live in members for record in live.records.values()]
    for record in records:
        record.sampled(samples)
    return [record.kept() for record in records]


def _in_blocks(
    context: Context, bundle: Bundle, number: int, order: Sequence[Process], draw: random.Random
) -> list[LiveMember]:
    """Raise _LackOfMemoryError where not all members can be alive together; none has measured then."""
    members: list[LiveMember] = []
    seen_b = context.memory_b
    try:
        for place, process in enumerate(order):
            # What is left to start, as far as it is known; of the first round the largest so far stands for the next.
            left_b = sum(seen_b.get(one.name, 0) for one in order[place:]) or max(seen_b.values(), default=0)
            lack = lack_of_memory(left_b) if len(order) > 1 and left_b else None
            if lack is not None:
                raise _LackOfMemoryError(lack)
            members.append(_started(context, bundle, number, process, None))
        for group in bundle.groups:
            _measure(context, group, members, draw)
        for live in members:
            live.finish()
    finally:
        for live in members:
            live.member.kill()
    return members


def _whole(  # noqa: PLR0917
    context: Context, bundle: Bundle, number: int, process: Process, why: Reason, draw: random.Random
) -> LiveMember:
    live = _started(context, bundle, number, process, why)
    try:
        for group in bundle.groups:
            _measure(context, group, [live], draw)
        live.finish()
    finally:
        live.member.kill()
    return live


def _started(context: Context, bundle: Bundle, number: int, process: Process, why_whole: Reason | None) -> LiveMember:
    """Start a member and leave it stopped, its programs compiled; one that fails says why in its records."""
    context.watcher.starting(process)
    request = _request(context.plan, process, number)
    live = LiveMember(process, context.launcher.start(request), bundle.groups, number)
    for record in live.records.values():
        record.launch.turns = "blocks" if why_whole is None else "whole"
        record.launch.turns_reason = why_whole
        record.launch.planted_pct = request.variant.slowdown_pct
    resident_b = live.prepare()
    if resident_b is not None:
        context.memory_b[process.name] = max(resident_b, context.memory_b.get(process.name, 0))
    return live


def _request(plan: RunPlan, process: Process, number: int) -> MemberRequest:
    first = process.cells[0]
    variants = {variant.name: variant for variant in plan.suite.variants}
    variant = variants.get(first.variant, Variant(name=first.variant))
    prepare = Prepare(
        programs=[ProgramRequest(cell=cell, slowdown_pct=variant.slowdown_pct) for cell in process.cells],
        sources=plan.suite.programs,
        plan=plan.suite.plan,
        data=plan.suite.data,
        seed=plan.suite.seed,
        threads=first.threads or len(plan.cpus),
        cpus=plan.cpus,
        clock=plan.clock,
        prove=number == 0,
    )
    return MemberRequest(first.backend, variant, prepare)


def _measure(context: Context, group: Group, members: Sequence[LiveMember], draw: random.Random) -> None:
    """Warm up the group's members one by one, then let them take turns."""
    own = {cell.key: live for live in members for cell in live.process.cells if cell.key in group.cells}
    plan = context.plan.suite.plan
    keys = list(own)
    for key in draw.sample(keys, len(keys)):
        own[key].warm_up(key, group.key)
    for cycle in range(plan.cycles):
        for key in draw.sample(keys, len(keys)):
            context.stop.check()
            done = own[key].block(key, plan.block_s)
            if done is not None:
                own[key].records[key, group.key].block(cycle, done)
                context.watcher.block_done(own[key].cell(key))
    if plan.energy_s > 0 and counts_energy(context.plan):
        for key in draw.sample(keys, len(keys)):
            long = own[key].block(key, plan.energy_s, by_time=True)
            if long is not None:
                own[key].records[key, group.key].long_block(long)
    for key, live in own.items():
        live.records[key, group.key].done = not live.dead


def counts_energy(plan: RunPlan) -> bool:
    """Whether any sensor measures energy or power here."""
    return any(sensor.quantity in ("energy", "power") and sensor.status == "measured" for sensor in plan.sensors)
