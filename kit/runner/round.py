"""One round of groups that share processes: fresh workers, warmed up alone, taking turns in blocks, each then finished.

idle                             of a round with joules
start A │ start B │ start C      each alone, the others stopped, in random order
group   │ build each │ warm up C │ A │ B │ B A C │ A C B │ … cycles, in random order │ long blocks │ conclude each
finish A │ finish B │ finish C
idle

Where workers cannot be alive together they run one after another (`kit.runner.why_sequential`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import count, islice
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kit.clock import now_ns
from kit.compare.clean import CYCLES_LEAST, DEVICE_OTHERS, clean_cycles, disturbance
from kit.compare.table import LaunchRow
from kit.import_order import PATHS
from kit.profile.cell import Cell
from kit.profile.fields import Reason, reason
from kit.profile.schema import Blocks, Group, StepPlan
from kit.profile.store import Steps
from kit.profile.unfinished import RunPlan, SavedLaunch
from kit.runner.finished_launch import Idle, boards_seen, finished_launches, look
from kit.runner.interrupt import StopFlag
from kit.runner.round_worker import RoundWorker
from kit.runner.warm_up_and_blocks import REPEATS_MOST, has_energy, idle_s, steps_of
from kit.runner.why_sequential import LACK_OF_DEVICE_MEMORY, exclusive_device, lack_of_device_memory, lack_of_memory
from kit.runner.worker_processes import Asked
from kit.runner.worker_spec import GPU_SHARE, WorkerSpec, worker_spec
from kit.sensors.sampler import Sampling
from kit.stats.window_energy import Window
from kit.suites.groups import Bundle, WorkerPlan

if TYPE_CHECKING:
    from kit.runner.progress import RunProgress


# What sensors read whose rate within a turn is reported.
OF_ENERGY = ("energy", "power")


class Context(NamedTuple):
    """What the rounds of a run have in common."""

    plan: RunPlan
    start: Callable[[WorkerSpec, StopFlag], Asked]
    progress: RunProgress  # told between blocks only
    stop: StopFlag
    memory_b: dict[str, int]  # worker's name -> resident bytes that it was seen with; rounds add to it
    crowded: dict[frozenset[str], Reason]  # keys of cells -> why they cannot share a device; rounds add to it
    clean_cycles: dict[tuple[str, ...], int]  # cells that take turns -> those of the rounds so far; rounds add to it
    cycles: Mapping[str, int] = {}  # key of the group -> of a round; of others as the suite says
    proved: Collection[str] = ()  # keys of cells that need not prove themselves any more
    hosts: Sequence[str] = ()  # that cells of several devices are divided over, this one first; none: this one alone


def run_round(context: Context, bundle: Bundle, number: int) -> list[SavedLaunch]:
    """Measure one round; return a launch for every cell of every group, failed ones included.

    Raises:
        KeyboardInterrupt: the round is not whole; its workers have been killed.
        OSError: no room for a worker's files.
    """
    this_round = _RoundOfBundle(context, bundle, number)
    cells = [cell for plan in bundle.workers for cell in plan.cells]
    before, sampling = look(cells), Sampling.start(context.plan.sensors)
    idle, seconds = None, idle_s(context.plan.sensors)
    has_idle = has_energy(context.plan, number) and steps_of(context.plan.suite.plan, cells).energy_s > 0
    try:
        if sampling is None or not has_idle:
            workers = this_round.measure()
        else:
            idle_before = stay_idle(sampling, seconds, context.stop)
            workers = this_round.measure()
            idle = Idle(idle_before, stay_idle(sampling, seconds, context.stop))
    finally:
        samples = sampling.stop() if sampling is not None else None
    boards = boards_seen(before, look(cells))
    return [saved for worker in workers for saved in finished_launches(worker, samples, boards, idle)]


def stay_idle(sampling: Sampling, seconds: float, stop: StopFlag) -> Window:
    """Let the sampler see the machine without workers for so long; return when.

    Raises:
        KeyboardInterrupt: it was asked for.
    """
    sampling.wait_for_first()
    begin_ns = now_ns()
    stop.sleep(seconds)
    return begin_ns, now_ns()


class _RoundOfBundle:
    """One round of a bundle."""

    def __init__(self, context: Context, bundle: Bundle, number: int) -> None:
        self._context, self._number = context, number
        self._draw = random.Random(f"{context.plan.suite.seed}/{number}/{bundle.groups[0].key}")
        # Each group is the first of its processes in turn: where they lie in memory, the others follow.
        first = number % len(bundle.groups)
        others = [*bundle.groups[:first], *bundle.groups[first + 1 :]]
        self._groups = [bundle.groups[first], *self._draw.sample(others, len(others))]
        self._order = self._draw.sample(bundle.workers, len(bundle.workers))
        self._workers: list[RoundWorker] = []  # that have been started

    def measure(self) -> list[RoundWorker]:
        """Return the workers, ended, with their launches."""
        cells = [cell for plan in self._order for cell in plan.cells]
        crowded, together = self._context.crowded, frozenset(cell.key for cell in cells)
        why = exclusive_device(cells) or crowded.get(together) if len(self._order) > 1 else None
        begin_ns = now_ns()
        outcome = self._in_blocks() if why is None else why
        if isinstance(outcome, Reason):
            self._context.progress.begins_anew(now_ns() - begin_ns)
            if outcome.code == LACK_OF_DEVICE_MEMORY:
                crowded[together] = outcome  # it would be so again
            return [self._alone(plan, outcome) for plan in self._order]
        return outcome

    def _in_blocks(self) -> list[RoundWorker] | Reason:
        """Return the workers, ended; or why they cannot be alive together: nothing that they measured counts then."""
        workers, share = list[RoundWorker](), 1 / len(self._order)
        try:
            for index, plan in enumerate(self._order):
                if (lack := self._lack_of_memory(self._order[index:])) is not None:
                    return lack
                workers.append(self._started(plan, None, share))
                self._build(self._groups[0], workers[-1:])
                if (lack := self._lack_of_device_memory(workers)) is not None:
                    return lack
            self._measure_groups(workers)
            if (lack := self._lack_of_device_memory(workers)) is not None:
                return lack
        finally:
            for worker in workers:
                worker.end()
        return workers

    def _alone(self, plan: WorkerPlan, why: Reason) -> RoundWorker:
        """Run a worker from its start to its end, before the next begins."""
        worker = self._started(plan, why)
        try:
            self._measure_groups([worker])
        finally:
            worker.end()
        return worker

    def _lack_of_memory(self, to_start: Sequence[WorkerPlan]) -> Reason | None:
        # As far as it is known; in the first round the largest worker so far stands for the next.
        seen_b = {plan.name: self._context.memory_b.get(plan.name, 0) for plan in self._order}
        needed_b = sum(seen_b[plan.name] for plan in to_start) or max(seen_b.values())
        return lack_of_memory(needed_b) if len(self._order) > 1 and needed_b else None

    def _lack_of_device_memory(self, workers: Sequence[RoundWorker]) -> Reason | None:
        if len(self._order) == 1:
            return None
        launches = (launch for worker in workers for launch in worker.launches.values())
        return lack_of_device_memory(launches, GPU_SHARE / len(self._order))

    def _started(self, plan: WorkerPlan, why_sequential: Reason | None, share: float = 1.0) -> RoundWorker:
        """Start a worker and leave it stopped, its framework imported; one that fails says why in its launches."""
        context = self._context
        context.progress.starting(plan)
        spec = worker_spec(context.plan, plan, self._number, share, hosts=context.hosts, proved=context.proved)
        steps = steps_of(context.plan.suite.plan, plan.cells)
        worker = RoundWorker(plan, spec, context.start(spec, context.stop), steps, self._groups, self._number)
        self._workers.append(worker)
        for (key, _), launch in worker.launches.items():
            why = why_sequential if worker.cell(key).in_blocks else reason("fit_runs_alone")
            launch.turns = "blocks" if why is None else "sequential"
            launch.turns_reason = why
        worker.prepare()
        return worker

    def _build(self, group: Group, workers: Sequence[RoundWorker]) -> None:
        """Make the group's cells ready, those that are not."""
        memory_b = self._context.memory_b
        for worker in workers:
            for key in [cell.key for cell in worker.plan.cells if cell.key in group.cells]:
                if not worker.is_built(key):
                    self._context.progress.building(worker.cell(key))
                resident_b = worker.build(key, group.key)
                if resident_b is not None:
                    memory_b[worker.plan.name] = max(resident_b, memory_b.get(worker.plan.name, 0))

    def _measure_groups(self, workers: Sequence[RoundWorker]) -> None:
        """Measure group after group; a cell that no later group wants is concluded, each worker finished at the end."""
        for index, group in enumerate(self._groups):
            holders = self._measure(group, workers)
            for key, worker in holders.items():
                if not worker.is_gone(key):
                    worker.measured.add((key, group.key))
                if not any(key in later.cells for later in self._groups[index + 1 :]):
                    worker.conclude(key)
        for worker in workers:
            worker.finish()

    def _measure(self, group: Group, workers: Sequence[RoundWorker]) -> dict[str, RoundWorker]:
        """Build and warm up the group's cells one by one, then let them take turns; return cell key -> its worker.

        Fits take no turns: each is measured from its first to its last step.
        """
        self._build(group, workers)
        holders = {cell.key: worker for worker in workers for cell in worker.plan.cells if cell.key in group.cells}
        fits = [key for key, worker in holders.items() if not worker.cell(key).in_blocks]
        stepping = {key: worker for key, worker in holders.items() if key not in fits}
        self._take_turns(group, stepping)
        for key in self._draw.sample(fits, len(fits)):
            self._fit(group, key, holders[key])
        return holders

    def _take_turns(self, group: Group, holders: Mapping[str, RoundWorker]) -> None:
        whole = self._context.plan.suite.plan
        plan = steps_of(whole, [worker.cell(key) for key, worker in holders.items()])
        if plan is whole and group.key in self._context.cycles:
            plan = replace(plan, cycles=self._context.cycles[group.key])
        keys = list(holders)
        for key in self._draw.sample(keys, len(keys)):
            self._warm_up(group, key, holders[key])
        # A command that takes longer than a block has fewer of them: so many as take the time of the planned ones.
        slowest_s = max((worker.step_s(key) for key, worker in holders.items() if worker.is_command(key)), default=0.0)
        if slowest_s > plan.block_s:
            plan = replace(plan, cycles=max(CYCLES_LEAST, round(plan.cycles * plan.block_s / slowest_s)))
        self._cycles(group, holders, plan)
        if plan.energy_s > 0 and has_energy(self._context.plan, self._number):
            for key in self._draw.sample(keys, len(keys)):
                self._long_block(group, key, holders[key], plan.energy_s)

    def _warm_up(self, group: Group, key: str, worker: RoundWorker) -> None:
        cell, progress = worker.cell(key), self._context.progress
        worker.warm_up(key, group.key, lambda step_s: progress.warming_up(cell, step_s))

    def _cycles(self, group: Group, holders: Mapping[str, RoundWorker], plan: StepPlan) -> None:
        """Let the cells take turns until so many cycles as planned are clean, or REPEATS_MOST times as many have run.

        Where hardly any cycle of earlier rounds was clean, the neighbour stays: none is repeated.
        """
        seen, turns = self._context.clean_cycles, (group.key, *sorted(holders))
        most = plan.cycles if seen.get(turns, CYCLES_LEAST) < CYCLES_LEAST else REPEATS_MOST * plan.cycles
        clean, orders = 0, self._orders(list(holders))
        for cycle in range(most):
            if all(worker.is_gone(key) for key, worker in holders.items()):
                return
            others = self._cycle(group, holders, cycle, orders, plan)
            ran = [(worker.cell(key), worker.launches[key, group.key]) for key, worker in holders.items()]
            measured = [LaunchRow(cell, launch, launch.blocks) for cell, launch in ran if launch.gave_number]
            cycles = clean_cycles(measured, plan.cycles) if measured else None
            before, clean = clean, cycles.clean if cycles is not None else 0
            # Others that take a little of every block disturb a cycle without disturbing one of its blocks.
            others = others or max(cycles.others.values() if cycles is not None else (0.0,))
            is_last = clean >= plan.cycles or cycle + 1 == most
            disturbed, is_repeated = None if clean > before else others, most > plan.cycles and not is_last
            self._context.progress.cycle_done(clean, plan.cycles, disturbed, is_repeated=is_repeated)
            if is_last:
                break
        seen[turns] = seen.get(turns, 0) + clean

    def _orders(self, keys: Sequence[str]) -> Iterator[Sequence[str]]:
        """Yield orders of cells, each other one reversed: what becomes slower meanwhile slows all alike."""
        while True:
            yield (order := self._draw.sample(keys, len(keys)))
            yield order[::-1]

    def _turns(self, holders: Mapping[str, RoundWorker]) -> int:
        """Return in how many turns the blocks of a cycle are taken: that of the cell that can have the fewest.

        It is one where cells differ in more than the code that their variants load, and are no commands, each run of
        which starts anew. For some tens of milliseconds after
        a switch steps take longer, of one framework by some percent more than of another, and so may those of other
        threads: short turns would bias that ratio. It is one, too, of a cell that nobody alternates with, and where a
        sensor of energy or power answers, which needs two readings in a turn.
        """
        if len(holders) == 1:
            return 1
        are_commands = all(worker.is_command(key) for key, worker in holders.items())
        sensors = self._context.plan.sensors
        if not are_commands and any(
            sensor.status != "unavailable" and sensor.quantity in OF_ENERGY for sensor in sensors
        ):
            return 1
        kinds = set()
        for key, worker in holders.items():
            variant = worker.spec.variant
            env = frozenset((name, value) for name, value in variant.env.items() if name != PATHS)
            kinds.add((worker.cell(key).key_without(("variant",)), variant.python, variant.image, env))
        if len(kinds) > 1 and not are_commands:
            return 1
        return min(worker.turns_at_most(key) for key, worker in holders.items())

    def _cycle(
        self,
        group: Group,
        holders: Mapping[str, RoundWorker],
        cycle: int,
        orders: Iterator[Sequence[str]],
        plan: StepPlan,
    ) -> float:
        """Run a block of every cell, in turns; return which fraction of the CPUs others took in one at most.

        It is 0 where others disturbed no block. A repeated cycle ends with the first block that others disturb.
        """
        turns, others = self._turns(holders), 0.0
        for order in islice(orders, turns):
            is_late = False
            for key in order:
                self._context.stop.check()
                is_late |= holders[key].take_turn(key, plan.block_s, turns)
                if turns == 1:
                    others = max(others, self._end_block(group, key, holders[key], cycle))
                    if others and cycle >= plan.cycles:
                        return others
            if is_late:
                break
        if turns > 1:
            others = max(self._end_block(group, key, worker, cycle, turns) for key, worker in holders.items())
        return others

    def _end_block(self, group: Group, key: str, worker: RoundWorker, cycle: int, turns: int = 1) -> float:
        """Add a block to its launch; return which fraction of the CPUs others took where they disturbed it, else 0."""
        if (ran := worker.end_block(key, cycle, turns)) is None:
            return 0.0
        blocks, step_ns = ran
        self._add(group, key, worker, blocks, step_ns)
        return disturbance(worker.cell(key), worker.launches[key, group.key], blocks) or 0.0

    def _long_block(self, group: Group, key: str, worker: RoundWorker, seconds: float) -> None:
        """Run the block over which energy is measured; once more where others disturbed it: the better one counts."""
        cell, launch = worker.cell(key), worker.launches[key, group.key]
        tries: list[tuple[float, Blocks]] = []
        while len(tries) < REPEATS_MOST:
            self._context.stop.check()
            if (blocks := worker.long_block(key, group.key, seconds)) is None:
                return
            self._add_device_others(cell, blocks)
            fraction = disturbance(cell, launch, blocks)
            # A board's joules have no part in what the CPUs do: there processes on it count, and joules are refused.
            taken = fraction if cell.device == "cpu" else blocks.counters[DEVICE_OTHERS][0]
            tries.append((taken or 0.0, blocks))
            if fraction is None:
                break
        taken, worker.long_blocks[key, group.key] = min(tries, key=itemgetter(0))
        if taken and cell.device == "cpu":
            launch.notes.append(reason("energy_disturbed", share_pct=100 * taken))

    def _add_device_others(self, cell: Cell, blocks: Blocks) -> None:
        """Add to a block how many processes of others compute on the cell's accelerators; None: not known."""
        if cell.device == "cpu":
            return
        alive = [worker for worker in self._workers if not worker.has_ended]
        holding = [worker for worker in alive if worker.plan.cells[0].device == cell.device]
        processes = holding[0].processes_on(cell) if holding else None
        blocks.counters[DEVICE_OTHERS] = [None if processes is None else max(0, processes - len(holding))]

    def _fit(self, group: Group, key: str, worker: RoundWorker) -> None:
        """Run a fit to its end, in stretches that only let progress be shown and an interrupt be heeded."""
        self._warm_up(group, key, worker)
        for cycle in count():
            self._context.stop.check()
            if (ran := worker.stretch(key, cycle)) is None:
                return
            blocks, step_ns, left = ran
            self._add(group, key, worker, blocks, step_ns, left)
            if not left:
                return

    def _add(  # noqa: PLR0917
        self, group: Group, key: str, worker: RoundWorker, blocks: Blocks, step_ns: Steps, left: int | None = None
    ) -> None:
        """Add a block to its launch, and show it; `left`: the steps that a fit still has to do."""
        cell = worker.cell(key)
        self._add_device_others(cell, blocks)
        worker.add(key, group.key, blocks, step_ns)
        self._context.progress.block_done(cell, blocks, left)
