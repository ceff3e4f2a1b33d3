"""One round of a bundle: fresh members for every process, warmed up alone, taking turns in blocks, each then finished.

start A │ start B │ start C      each alone, the others stopped, in random order
group   │ build each │ warm up C │ A │ B │ B A C │ A C B │ … cycles, in random order │ long blocks │ conclude each
finish A │ finish B │ finish C
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple, Protocol

from kit.profile.cell import Cell, Variant
from kit.profile.reason import Reason, reason
from kit.profile.schema import Group
from kit.profile.unfinished import KeptLaunch, RunPlan
from kit.runner.cpus import default_threads
from kit.runner.launchers.protocol import Launcher, MemberRequest
from kit.runner.live_member import LiveMember
from kit.runner.stop import StopFlag
from kit.runner.turns import exclusive_device, lack_of_memory
from kit.sensors.sampling import Sampling
from kit.suites.plan import Bundle, Process
from kit.worker.messages import BlockDone, Prepare, ProgramRequest

# Of a GPU's memory; the rest is for contexts and libraries, which no framework's limit counts.
GPU_SHARE = 0.9
# A fit is cut only for progress, an interrupt, and the reference between its blocks.
FIT_BLOCK_S = 1.0


class Watcher(Protocol):
    """Whoever shows progress; called between blocks only."""

    def starting(self, process: Process) -> None:
        """A member is about to start."""

    def block_done(self, cell: Cell, done: BlockDone) -> None:
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
            members.append(_started(context, bundle, number, process, None, share=1 / len(order)))
            _build(context, bundle.groups[0], members[-1:])
        for place, group in enumerate(bundle.groups):
            _measure(context, group, members, draw, later=bundle.groups[place + 1 :])
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
        for place, group in enumerate(bundle.groups):
            _measure(context, group, [live], draw, later=bundle.groups[place + 1 :])
        live.finish()
    finally:
        live.member.kill()
    return live


def _started(  # noqa: PLR0917
    context: Context, bundle: Bundle, number: int, process: Process, why_whole: Reason | None, share: float = 1.0
) -> LiveMember:
    """Start a member and leave it stopped, its framework imported; one that fails says why in its records."""
    context.watcher.starting(process)
    request = _request(context.plan, process, number, share)
    live = LiveMember(process, context.launcher.start(request), bundle.groups, number)
    for (key, _), record in live.records.items():
        why = reason("fit_runs_alone") if live.cell(key).task == "fit" else why_whole
        record.launch.turns = "blocks" if why is None else "whole"
        record.launch.turns_reason = why
        record.launch.planted_pct = request.variant.slowdown_pct
    live.prepare()
    return live


def _request(plan: RunPlan, process: Process, number: int, share: float) -> MemberRequest:
    first = process.cells[0]
    variants = {variant.name: variant for variant in plan.suite.variants}
    variant = variants.get(first.variant, Variant(name=first.variant))
    prepare = Prepare(
        programs=[
            ProgramRequest(cell=cell, slowdown_pct=variant.slowdown_pct, repeat=number) for cell in process.cells
        ],
        sources=plan.suite.programs,
        plan=plan.suite.plan,
        data=plan.suite.data,
        seed=plan.suite.seed,
        threads=first.threads or default_threads(plan.cpus, plan.identity.container.cpu_limit),
        cpus=plan.cpus,
        clock=plan.clock,
        memory_share=GPU_SHARE * share,
        prove=number == 0,
    )
    return MemberRequest(first.backend, variant, prepare)


def _build(context: Context, group: Group, members: Sequence[LiveMember]) -> None:
    """Make the group's cells ready, those that are not."""
    for live in members:
        for key in [cell.key for cell in live.process.cells if cell.key in group.cells]:
            resident_b = live.build(key, group.key)
            if resident_b is not None:
                name = live.process.name
                context.memory_b[name] = max(resident_b, context.memory_b.get(name, 0))


def _measure(
    context: Context, group: Group, members: Sequence[LiveMember], draw: random.Random, later: Sequence[Group]
) -> None:
    """Build and warm up the group's cells one by one, then let them take turns; a cell that is not wanted `later` goes.

    Fits take no turns: each is measured from its first to its last step.
    """
    _build(context, group, members)
    own = {cell.key: live for live in members for cell in live.process.cells if cell.key in group.cells}
    fits = [key for key, live in own.items() if live.cell(key).task == "fit"]
    stepping = {key: live for key, live in own.items() if key not in fits}
    for key in draw.sample(list(stepping), len(stepping)):
        own[key].warm_up(key, group.key)
    _take_turns(context, group, stepping, draw)
    for key in draw.sample(fits, len(fits)):
        own[key].warm_up(key, group.key)
        _fit(context, group, key, own[key])
    for key, live in own.items():
        live.records[key, group.key].done = not live.is_gone(key)
        if not any(key in other.cells for other in later):
            live.conclude(key)


def _take_turns(context: Context, group: Group, own: Mapping[str, LiveMember], draw: random.Random) -> None:
    plan, keys = context.plan.suite.plan, list(own)
    for cycle in range(plan.cycles):
        for key in draw.sample(keys, len(keys)):
            context.stop.check()
            done = own[key].block(key, plan.block_s)
            if done is not None:
                own[key].records[key, group.key].block(cycle, done)
                context.watcher.block_done(own[key].cell(key), done)
    if plan.energy_s > 0 and counts_energy(context.plan):
        for key in draw.sample(keys, len(keys)):
            long = own[key].block(key, plan.energy_s, by_time=True)
            if long is not None:
                own[key].records[key, group.key].long_block(long)


def _fit(context: Context, group: Group, key: str, live: LiveMember) -> None:
    """Run a fit to its end, in blocks that only let progress be shown and an interrupt be heeded."""
    for block in count():
        context.stop.check()
        done = live.block(key, FIT_BLOCK_S)
        if done is None:
            return
        live.records[key, group.key].block(block, done)
        context.watcher.block_done(live.cell(key), done)
        if not done.left:
            return


def counts_energy(plan: RunPlan) -> bool:
    """Whether any sensor measures energy or power here."""
    return any(sensor.quantity in ("energy", "power") and sensor.status == "measured" for sensor in plan.sensors)
