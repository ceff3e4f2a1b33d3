"""One round of groups that share processes: fresh members, warmed up alone, taking turns in blocks, each then finished.

idle                             of a round with joules
start A │ start B │ start C      each alone, the others stopped, in random order
group   │ build each │ warm up C │ A │ B │ B A C │ A C B │ … cycles, in random order │ long blocks │ conclude each
finish A │ finish B │ finish C
idle

Where members cannot be alive together they run one after another (`kit.runner.sequential`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kit.backends.catalog import CATALOG
from kit.backends.environment import THREAD_VARIABLES
from kit.clock import now_ns
from kit.compare.clean_cycles import CYCLES_LEAST, DEVICE_OTHERS, cycles_of, disturbances
from kit.profile.cell import Cell, Variant
from kit.profile.launch import StepPlan
from kit.profile.reason import Reason, reason
from kit.profile.schema import Group
from kit.profile.unfinished import RunPlan, SavedLaunch
from kit.runner.boards import boards_seen, look
from kit.runner.cpus import default_threads
from kit.runner.energy import Idle, has_energy, idle_s, stay_idle
from kit.runner.interrupt import StopFlag
from kit.runner.member import Member
from kit.runner.processes.process import MemberRequest, Process
from kit.runner.sequential import LACK_OF_DEVICE_MEMORY, exclusive_device, lack_of_device_memory, lack_of_memory
from kit.sensors.sampler import Sampling
from kit.suites.plan import MemberPlan, SharedGroups
from kit.worker.messages import Done, Prepare, ProgramRequest
from kit.workloads.operations import is_operation

if TYPE_CHECKING:
    from kit.runner.progress import RunProgress

# Of a GPU's memory; the rest is for contexts and libraries, which no framework's limit counts.
GPU_SHARE = 0.9
# A fit is cut only for progress, an interrupt, and the reference between its blocks.
FIT_BLOCK_S = 1.0
# A cycle that others disturbed is measured again, until so many times the planned cycles have run.
REPEATS_MOST = 2
# Of operations beside networks: the best of some blocks counts, and their steps do the same from the second on.
CEILING_CYCLES = 3
CEILING_WARMUP_S = 0.3


class Context(NamedTuple):
    """What the rounds of a run have in common."""

    plan: RunPlan
    start: Callable[[MemberRequest], Process]
    progress: RunProgress  # told between blocks only
    stop: StopFlag
    memory_b: dict[str, int]  # member's name -> resident bytes that it was seen with; rounds add to it
    crowded: dict[frozenset[str], Reason]  # keys of cells -> why they cannot share a device; rounds add to it
    clean_cycles: dict[tuple[str, ...], int]  # cells that take turns -> those of the rounds so far; rounds add to it
    proved: Collection[str] = ()  # keys of cells that need not prove themselves any more
    hosts: Sequence[str] = ()  # that cells of several devices are divided over, this one first; none: this one alone


def run_round(context: Context, shared: SharedGroups, number: int) -> list[SavedLaunch]:
    """Measure one round; return a launch for every cell of every group, failed ones included.

    Raises:
        KeyboardInterrupt: the round is not whole; its members have been killed.
        OSError: no room for a member's files.
    """
    this_round = _Round(context, shared, number)
    cells = [cell for plan in shared.members for cell in plan.cells]
    before, sampling = look(cells), Sampling.start(context.plan.sensors)
    idle, seconds = None, idle_s(context.plan.sensors)
    has_idle = has_energy(context.plan, number) and steps_of(context.plan.suite.plan, cells).energy_s > 0
    try:
        if sampling is None or not has_idle:
            members = this_round.measure()
        else:
            idle_before = stay_idle(sampling, seconds, context.stop)
            members = this_round.measure()
            idle = Idle(idle_before, stay_idle(sampling, seconds, context.stop))
    finally:
        samples = sampling.stop() if sampling is not None else None
    boards = boards_seen(before, look(cells))
    return [kept for member in members for kept in member.finished_launches(samples, boards, idle)]


class _Round:
    """One round of groups that share processes."""

    def __init__(self, context: Context, shared: SharedGroups, number: int) -> None:
        self._context, self._groups, self._number = context, shared.groups, number
        self._draw = random.Random(f"{context.plan.suite.seed}/{number}/{shared.groups[0].key}")
        self._order = self._draw.sample(shared.members, len(shared.members))
        self._members: list[Member] = []  # that have been started

    def measure(self) -> list[Member]:
        """Return the members, ended, with their launches."""
        cells = [cell for plan in self._order for cell in plan.cells]
        crowded, together = self._context.crowded, frozenset(cell.key for cell in cells)
        why = _why_sequential(self._context, cells) or crowded.get(together) if len(self._order) > 1 else None
        begin_ns = now_ns()
        outcome = self._in_blocks() if why is None else why
        if isinstance(outcome, Reason):
            self._context.progress.begins_anew(now_ns() - begin_ns)
            if outcome.code == LACK_OF_DEVICE_MEMORY:
                crowded[together] = outcome  # it would be so again
            return [self._alone(plan, outcome) for plan in self._order]
        return outcome

    def _in_blocks(self) -> list[Member] | Reason:
        """Return the members, ended; or why they cannot be alive together: nothing that they measured counts then."""
        members, share = list[Member](), 1 / len(self._order)
        try:
            for place, plan in enumerate(self._order):
                if (lack := self._lack_of_memory(self._order[place:])) is not None:
                    return lack
                members.append(self._started(plan, None, share))
                self._build(self._groups[0], members[-1:])
                if (lack := self._lack_of_device_memory(members)) is not None:
                    return lack
            self._measure_groups(members)
            if (lack := self._lack_of_device_memory(members)) is not None:
                return lack
        finally:
            for member in members:
                member.kill()
        return members

    def _alone(self, plan: MemberPlan, why: Reason) -> Member:
        """Run a member from its start to its end, before the next begins."""
        member = self._started(plan, why)
        try:
            self._measure_groups([member])
        finally:
            member.kill()
        return member

    def _lack_of_memory(self, to_start: Sequence[MemberPlan]) -> Reason | None:
        # As far as it is known; of the first round the largest so far stands for the next.
        seen_b = self._context.memory_b
        needed_b = sum(seen_b.get(plan.name, 0) for plan in to_start) or max(seen_b.values(), default=0)
        return lack_of_memory(needed_b) if len(self._order) > 1 and needed_b else None

    def _lack_of_device_memory(self, members: Sequence[Member]) -> Reason | None:
        if len(self._order) == 1:
            return None
        launches = (launch for member in members for launch in member.launches.values())
        return lack_of_device_memory(launches, GPU_SHARE / len(self._order))

    def _started(self, plan: MemberPlan, why_sequential: Reason | None, share: float = 1.0) -> Member:
        """Start a member and leave it stopped, its framework imported; one that fails says why in its launches."""
        context = self._context
        context.progress.starting(plan)
        request = member_request(context.plan, plan, self._number, share, hosts=context.hosts, proved=context.proved)
        member = Member(plan, request, context.start(request), self._groups, self._number, context.stop)
        self._members.append(member)
        for (key, _), launch in member.launches.items():
            why = reason("fit_runs_alone") if member.cell(key).task == "fit" else why_sequential
            launch.turns = "blocks" if why is None else "sequential"
            launch.turns_reason = why
        member.prepare()
        return member

    def _build(self, group: Group, members: Sequence[Member]) -> None:
        """Make the group's cells ready, those that are not."""
        memory_b = self._context.memory_b
        for member in members:
            for key in [cell.key for cell in member.plan.cells if cell.key in group.cells]:
                if not member.is_built(key):
                    self._context.progress.building(member.cell(key))
                resident_b = member.build(key, group.key)
                if resident_b is not None:
                    memory_b[member.plan.name] = max(resident_b, memory_b.get(member.plan.name, 0))

    def _measure_groups(self, members: Sequence[Member]) -> None:
        """Measure group after group; a cell that no later group wants is concluded, each member finished at the end."""
        for place, group in enumerate(self._groups):
            holders = self._measure(group, members)
            for key, member in holders.items():
                if not member.is_gone(key):
                    member.measured.add((key, group.key))
                if not any(key in later.cells for later in self._groups[place + 1 :]):
                    member.conclude(key)
        for member in members:
            member.finish()

    def _measure(self, group: Group, members: Sequence[Member]) -> dict[str, Member]:
        """Build and warm up the group's cells one by one, then let them take turns; return cell key -> its member.

        Fits take no turns: each is measured from its first to its last step.
        """
        self._build(group, members)
        holders = {cell.key: member for member in members for cell in member.plan.cells if cell.key in group.cells}
        fits = [key for key, member in holders.items() if member.cell(key).task == "fit"]
        stepping = {key: member for key, member in holders.items() if key not in fits}
        self._take_turns(group, stepping)
        for key in self._draw.sample(fits, len(fits)):
            self._fit(group, key, holders[key])
        return holders

    def _take_turns(self, group: Group, holders: Mapping[str, Member]) -> None:
        plan = steps_of(self._context.plan.suite.plan, [member.cell(key) for key, member in holders.items()])
        keys = list(holders)
        for key in self._draw.sample(keys, len(keys)):
            holders[key].warm_up(key, group.key)
        self._cycles(group, holders, plan)
        if plan.energy_s > 0 and has_energy(self._context.plan, self._number):
            for key in self._draw.sample(keys, len(keys)):
                self._long_block(group, key, holders[key], plan.energy_s)

    def _cycles(self, group: Group, holders: Mapping[str, Member], plan: StepPlan) -> None:
        """Let the cells take turns until so many cycles as planned are clean, or REPEATS_MOST times as many have run.

        A repeated cycle ends with the first block that others disturb. Where hardly any cycle of earlier rounds was
        clean, the neighbour stays: none is repeated.
        """
        seen, turns = self._context.clean_cycles, (group.key, *sorted(holders))
        most = plan.cycles if seen.get(turns, CYCLES_LEAST) < CYCLES_LEAST else REPEATS_MOST * plan.cycles
        keys, clean = list(holders), 0
        for cycle in range(most):
            if all(holders[key].is_gone(key) for key in keys):
                return
            others = 0.0
            for key in self._draw.sample(keys, len(keys)):
                fraction = self._turn(group, key, holders[key], cycle, plan.block_s)
                others = max(others, fraction or 0.0)
                if fraction is not None and cycle >= plan.cycles:
                    break
            measured = [(member.cell(key), member.launches[key, group.key]) for key, member in holders.items()]
            measured = [(cell, launch) for cell, launch in measured if launch.gave_number]
            before, clean = clean, cycles_of(measured, plan.cycles)[0].clean if measured else 0
            is_last = clean >= plan.cycles or cycle + 1 == most
            disturbed, is_repeated = None if clean > before else others, most > plan.cycles and not is_last
            self._context.progress.cycle_done(clean, plan.cycles, disturbed, is_repeated=is_repeated)
            if is_last:
                break
        seen[turns] = seen.get(turns, 0) + clean

    def _turn(self, group: Group, key: str, member: Member, cycle: int, seconds: float) -> float | None:
        """Run a block; return which fraction of the CPUs others took where they disturbed it, else None."""
        done, cell = self._block(group, key, member, cycle, seconds), member.cell(key)
        launch = member.launches[key, group.key]
        return None if done is None else next(iter(disturbances(cell, launch, done.part.blocks)), None)

    def _long_block(self, group: Group, key: str, member: Member, seconds: float) -> None:
        """Run the block over which energy is measured; again, once, where others disturbed it."""
        for _ in range(REPEATS_MOST):
            self._context.stop.check()
            done = member.long_block(key, group.key, seconds)
            launch = member.launches[key, group.key]
            if done is None or {*disturbances(member.cell(key), launch, done.part.blocks)} <= {None}:
                return

    def _device_others(self, cell: Cell) -> int | None:
        """Return how many processes of others compute on the accelerators of a cell; None where it is not known."""
        alive = [member for member in self._members if not member.has_ended]
        holding = [member for member in alive if member.plan.cells[0].device == cell.device]
        processes = holding[0].processes_on(cell) if holding else None
        return None if processes is None else max(0, processes - len(holding))

    def _fit(self, group: Group, key: str, member: Member) -> None:
        """Run a fit to its end, in blocks that only let progress be shown and an interrupt be heeded."""
        member.warm_up(key, group.key)
        for cycle in count():
            done = self._block(group, key, member, cycle, FIT_BLOCK_S)
            if done is None or not done.left:
                return

    def _block(self, group: Group, key: str, member: Member, cycle: int, seconds: float) -> Done | None:
        self._context.stop.check()
        done, cell = member.block(key, cycle, seconds), member.cell(key)
        if done is not None:
            if cell.device != "cpu":
                done.part.blocks.counters[DEVICE_OTHERS] = [self._device_others(cell)]
            member.add(key, group.key, done)
            self._context.progress.block_done(cell, done)
        return done


def _why_sequential(context: Context, cells: Sequence[Cell]) -> Reason | None:
    """Return why members cannot be alive together: a member on several hosts cannot be stopped while others run."""
    return reason("several_hosts") if context.hosts else exclusive_device(cells)


def member_request(
    plan: RunPlan,
    member: MemberPlan,
    number: int,
    share: float,
    *,
    hosts: Sequence[str] = (),
    proved: Collection[str] = (),
) -> MemberRequest:
    """Return what a member is started with.

    Args:
        plan: of the run.
        member: which cells it holds.
        number: of the round.
        share: of the device memory that members may take.
        hosts: that cells of several devices are divided over.
        proved: keys of cells that need not prove themselves any more.
    """
    first = member.cells[0]
    variants = {variant.name: variant for variant in plan.suite.variants}
    variant = variants.get(first.variant, Variant(name=first.variant))
    over = list(hosts[: first.devices]) if first.devices > 1 else []
    ranks = CATALOG[first.backend].ranks(first, {**os.environ, **variant.env}, max(1, len(over)))
    threads = first.threads or default_threads(plan.cpus, plan.identity.number("container.cpu_limit"))
    prepare = Prepare(
        programs=[ProgramRequest(cell=cell, slowdown_pct=variant.slowdown_pct, repeat=number) for cell in member.cells],
        sources=plan.suite.programs,
        plan=steps_of(plan.suite.plan, member.cells),
        data=plan.suite.data,
        seed=plan.suite.seed,
        threads=max(1, threads * max(1, len(over)) // ranks),
        ranks=ranks,
        hosts=over,
        tells_threads=not {*variant.env} & {*THREAD_VARIABLES},
        cpus=plan.cpus,
        clock=plan.clock,
        memory_share=GPU_SHARE * share,
        prove=any(cell.key not in proved for cell in member.cells),
    )
    return MemberRequest(first.backend, variant, prepare)


def steps_of(steps: StepPlan, cells: Iterable[Cell]) -> StepPlan:
    """Return how long these cells are measured: operations beside networks are shorter, and have no long block."""
    if steps.ceiling_rounds is None or not all(map(is_operation, cells)):
        return steps
    cycles, warmup_s = min(steps.cycles, CEILING_CYCLES), min(steps.warmup_s, CEILING_WARMUP_S)
    return replace(steps, cycles=cycles, warmup_s=warmup_s, warmup_steps=min(steps.warmup_steps, 3), energy_s=0.0)
