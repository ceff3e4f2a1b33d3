"""Which rounds of a run are left, and how long they take: functions of its plan and of the launches there are.

rounds given   0 … rounds - 1 of every group; round 1 of every group comes before round 2 of any
disturbed      then again the rounds of groups in which too few cycles were clean
precision      on until the interval of each difference is narrow enough, a first look at round 8

How long is known by constants before the first round, by the pace of the last whole round after that. Cycles are
repeated in later rounds as in the last one, unless their neighbour stays: then none is. Rounds that are to be measured
again are added. A fit is known from its first stretch on: steps that are left × what its steps took; before that as
others in the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from statistics import mean
from typing import NamedTuple

from msgspec.structs import replace

from kit.backends.backend_catalog import CATALOG
from kit.clock import now_ns
from kit.compare.clean import CYCLES_LEAST, RoundCycles, count_blocks
from kit.compare.metrics import METRICS
from kit.compare.ratios import log_ratios, series
from kit.compare.runs import group_samples
from kit.compare.same_code import blocked_by_code
from kit.profile.cell import Cell
from kit.profile.schema import Blocks, CellResult, Group, Launch, StepPlan
from kit.profile.unfinished import RunPlan
from kit.report.plan_report import TimeNeeded
from kit.runner.fit_stretches import FIT_LEAST_S, WITH_REFERENCES
from kit.runner.round_worker import SHARED_PROCESS_ENDED
from kit.runner.warm_up_and_blocks import has_energy, idle_s, steps_of
from kit.runner.worker_processes import PROCESS_ENDED
from kit.stats.estimate import precise_enough
from kit.suites.plan import Bundle, plan_bundles
from kit.workloads.device_operations import is_operation

# Beyond this, more rounds are not the answer: a quarter of a day for the smallest group.
ROUNDS_MAX = 200
# Rounds that others disturbed are measured again: without a budget half as many as were planned.
REPEATED_ROUNDS = 0.5
# A program's own fault ends it with these.
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")


class RepeatsToCome(NamedTuple):
    """What others disturbed and will be measured again."""

    rounds: int = 0  # after the planned ones
    cells: frozenset[str] = frozenset()  # keys of those whose disturbed cycles rounds to come repeat


def failed_cells(launches: Iterable[Launch]) -> set[str]:
    """Return the keys of cells that have failed themselves: they would again, and cost the others' time."""
    return {
        launch.cell_key
        for launch in launches
        if launch.failure is not None
        and launch.failure.reason.code != SHARED_PROCESS_ENDED
        and lost_with(launch) is None
    }


def proved_cells(launches: Iterable[Launch], number: int) -> set[str]:
    """Return the keys of cells that proved themselves in a round before `number`."""
    before = (launch for launch in launches if launch.round < number)
    return {launch.cell_key for launch in before if any(phase.name == "parity" for phase in launch.phases)}


def lost_with(launch: Launch) -> str | None:
    """Return the other host on which a rank's process was ended under a launch, or did not start; None: none was.

    What a rank itself raises, or crashes with, is the cell's own failure. A supervisor always answers: where it does
    not stop its worker, its host is gone, and srun has not said so yet.
    """
    if launch.failure is None or launch.failure.reason.code not in PROCESS_ENDED | {"does_not_stop"}:
        return None
    values = launch.failure.reason.values
    return None if "host" not in values or values.get("signal") in CRASHES else str(values["host"])


def next_round(
    plan: RunPlan, launches: Sequence[Launch], ended: int, *, has_budget: bool = False
) -> tuple[int, list[Bundle]] | None:
    """Return the first round from `ended` on that is not whole and the groups it lacks; None where all is done.

    `has_budget`: a budget ends the rounds that are measured again, so that their number need not.
    """
    rounds = plan.suite.rounds
    is_open = has_budget or plan.suite.precision_pct is not None
    repeated = math.ceil(REPEATED_ROUNDS * rounds)
    for number in range(ended, max(rounds, ROUNDS_MAX) if is_open else rounds + repeated):
        shared = _groups_of(plan, launches, number)
        if not shared:
            return None
        lacking = [bundle for bundle in shared if not _is_whole(bundle, launches, number)]
        if lacking:
            return number, lacking
    return None


def _groups_of(plan: RunPlan, launches: Sequence[Launch], number: int) -> list[Bundle]:
    """Return the groups of a round, without the cells that failed before it and the groups that are precise enough."""
    before = [launch for launch in launches if launch.round < number]
    gone, is_repeated = failed_cells(before), number >= plan.suite.rounds and plan.suite.precision_pct is None
    steps = plan.suite.plan
    gone |= {
        cell.key
        for cell in plan.cells
        if not (_is_measured_again(cell) if is_repeated else _is_measured_in(cell, steps, number))
    }
    rounds = _rounds(plan, plan.cells, before) if is_repeated else {}
    left = []
    for group in plan.groups:
        lasting = replace(group, cells=[key for key in group.cells if key not in gone])
        has_no_pair_left = len(lasting.cells) < min(len(group.cells), 2)
        if is_repeated and not _lacking(rounds.get(group.key, {}), plan.suite.rounds):
            continue
        if number >= plan.suite.rounds and (has_no_pair_left or _is_precise(plan, lasting, before)):
            continue
        if lasting.cells:
            left.append(lasting)
    return plan_bundles([cell for cell in plan.cells if cell.key not in gone], left, plan.suite.process_axes)


def _is_measured_in(cell: Cell, steps: StepPlan, number: int) -> bool:
    """Return whether a planned round measures a cell, if it does not fail: some end before the others."""
    rounds = steps.ceiling_rounds if is_operation(cell) else None if cell.in_blocks else steps.fit_rounds
    return rounds is None or number < rounds


def _is_measured_again(cell: Cell) -> bool:
    """Return whether disturbed rounds repeat a cell: fits take minutes, of operations the best block counts."""
    return cell.in_blocks and not is_operation(cell)


def repeats_to_come(plan: RunPlan, launches: Sequence[Launch], done: int) -> RepeatsToCome:
    """Return what will be measured again, as far as it is known after `done` rounds."""
    planned = plan.suite.rounds
    left = 0 if plan.suite.precision_pct is not None else math.ceil(REPEATED_ROUNDS * planned) - max(0, done - planned)
    repeatable = filter(_is_measured_again, plan.cells)
    rounds = _rounds(plan, repeatable, launches)
    repeating = [group.cells for group in plan.groups if _has_clean(rounds.get(group.key, {}))]
    return RepeatsToCome(
        rounds=max(0, min(left, max((_lacking(known, planned) for known in rounds.values()), default=0))),
        cells=frozenset(key for cells in repeating for key in cells),
    )


def _lacking(rounds: Mapping[int, RoundCycles], planned: int) -> int:
    """Return how many rounds of a group are to be measured again: 0 where hardly any cycle was ever clean.

    A round whose launches were lost lacks nothing that others took.
    """
    if not _has_clean(rounds):
        return 0
    ran = sum(number < planned for number in rounds)
    return max(0, ran - sum(known.counts for known in rounds.values()))


def _has_clean(rounds: Mapping[int, RoundCycles]) -> bool:
    """Return whether enough cycles of a group were clean that disturbed ones are measured again."""
    return sum(known.clean for known in rounds.values()) >= CYCLES_LEAST


def _rounds(
    plan: RunPlan, cells: Iterable[Cell], launches: Sequence[Launch]
) -> Mapping[str, Mapping[int, RoundCycles]]:
    """Return the rounds of each group, as `kit compare` counts them."""
    _, rounds = count_blocks(_results(cells, launches), plan.suite.plan.cycles)
    return rounds.by_group


def _results(cells: Iterable[Cell], launches: Sequence[Launch]) -> Iterator[CellResult]:
    for cell in cells:
        yield CellResult(key=cell.key, cell=cell, launches=[each for each in launches if each.cell_key == cell.key])


def _is_whole(bundle: Bundle, launches: Iterable[Launch], number: int) -> bool:
    there = {
        (launch.group, launch.cell_key) for launch in launches if launch.round == number and lost_with(launch) is None
    }
    return all((group.key, key) in there for group in bundle.groups for key in group.cells)


def _is_precise(plan: RunPlan, group: Group, launches: Iterable[Launch]) -> bool:
    """Whether each difference of the group is known to within the precision asked for; a lone cell's step, if alone."""
    precision_pct = plan.suite.precision_pct
    if precision_pct is None:
        return False
    valid = [launch for launch in launches if launch.group == group.key]
    cells_of_group = [cell for cell in plan.cells if cell.key in group.cells]
    table, _ = count_blocks(_results(cells_of_group, valid), plan.suite.plan.cycles)
    step = METRICS["step_ns"]
    samples = group_samples(group, cells_of_group, table)
    if len(group.cells) == 1:
        known = [seen.value for sample in samples.values() for seen in series(step, sample).values()]
        return precise_enough([math.log(step_ns) for step_ns in known if step_ns > 0], precision_pct)
    pairs = [(samples[key], samples[other]) for key, other in combinations(group.cells, 2)]
    return all(
        # No round tells apart what is the same.
        bool(blocked_by_code(plan.suite, *pair))
        or precise_enough(list(log_ratios(step, *pair).values()), precision_pct)
        for pair in pairs
    )


class _EnergyTime(NamedTuple):
    """What joules take in a round; nothing in one that has none."""

    block_s: float = 0.0  # of each cell
    idle_s: float = 0.0  # before and after each set of workers


class _RoundTime(NamedTuple):
    """What a round takes by the constants, without the steps of its fits: cell keys, one for each time it runs."""

    seconds: float = 0.0
    fits: Sequence[str] = ()
    energy_s: float = 0.0  # takes as long on any machine
    stepping: frozenset[str] = frozenset()  # keys of cells that take turns


def _time_of_round(shared: Sequence[Bundle], steps: StepPlan, energy: _EnergyTime) -> _RoundTime:
    workers = [worker for groups in shared for worker in groups.workers]
    by_key = {cell.key: cell for worker in workers for cell in worker.cells}
    cells = [by_key[key] for groups in shared for group in groups.groups for key in group.cells]
    fits = [cell.key for cell in cells if not cell.in_blocks]
    plans = [steps_of(steps, [cell]) for cell in cells]
    stepping = [plan for plan, cell in zip(plans, cells, strict=True) if cell.in_blocks]
    starts_s = sum(CATALOG[worker.cells[0].backend].start_s for worker in workers)
    blocks_s = sum(plan.cycles * plan.block_s for plan in stepping)
    seconds = starts_s + sum(plan.warmup_s for plan in plans) + blocks_s
    energy_s = sum(plan is steps for plan in stepping) * energy.block_s + 2 * len(shared) * energy.idle_s
    return _RoundTime(seconds, fits, energy_s, frozenset(cell.key for cell in cells) - {*fits})


def _times_planned(
    cells: Sequence[Cell],
    groups: Sequence[Group],
    share: Sequence[str],
    steps: StepPlan,
    energies: Sequence[_EnergyTime],
) -> list[_RoundTime]:
    """Return what the rounds take, one for each of `energies`, where no cell fails."""

    @cache
    def shared(gone: frozenset[str]) -> list[Bundle]:
        left = [replace(group, cells=[key for key in group.cells if key not in gone]) for group in groups]
        return plan_bundles(cells, [group for group in left if group.cells], share)

    times = []
    for number, energy in enumerate(energies):
        gone = frozenset(cell.key for cell in cells if not _is_measured_in(cell, steps, number))
        times.append(_time_of_round(shared(gone), steps, energy))
    return times


def estimate(
    cells: Sequence[Cell], groups: Sequence[Group], share: Sequence[str], steps: StepPlan, rounds: int
) -> TimeNeeded:
    """Return how long these rounds take where steps are short against a block, and no sensor tells joules."""
    planned = _times_planned(cells, groups, share, steps, [_EnergyTime()] * rounds)
    seconds = sum(planned_round.seconds + len(planned_round.fits) * FIT_LEAST_S for planned_round in planned)
    return TimeNeeded(seconds, any(planned_round.fits for planned_round in planned))


class TimeLeft:
    """Takes what has ended, and says how long the rest takes."""

    def __init__(self, plan: RunPlan, rounds_done: int = 0, now: Callable[[], int] = now_ns) -> None:
        suite, self._plan, self._now = plan.suite, plan, now
        energies = [self._energy(number) for number in range(suite.rounds)]
        self._planned = _times_planned(plan.cells, plan.groups, suite.process_axes, suite.plan, energies)
        self._round, self._later, self._round_ns = _RoundTime(), self._planned[rounds_done:], now()
        self._is_open, self._has_programs = suite.precision_pct is not None, bool(suite.programs)
        self._pace: float | None = None  # what the last whole round took over its constants, without its fits
        self._fit_s: dict[str, float] = {}  # of each fit whose first stretch has run, in this round or before it
        self._this_fit_s = self._fits_s = 0.0  # of the fit that runs, and of all in this round, so far
        self._repeats = RepeatsToCome()
        self._repeated_s: dict[str, float] = {}  # of each cell in the last whole round: its blocks in repeated cycles
        self._repeated_now_s: dict[str, float] = {}  # the same in this round, so far

    @property
    def has_pace(self) -> bool:
        """Whether a round has ended: before, nothing is known of this machine."""
        return self._pace is not None

    def round_begins(self, number: int, shared: Sequence[Bundle]) -> None:
        """Take what a round measures."""
        self._round = _time_of_round(shared, self._plan.suite.plan, self._energy(number))
        self._later = self._planned[number + 1 :]
        self._round_ns, self._fits_s = self._now(), 0.0
        if number >= len(self._planned):
            self._repeats = self._repeats._replace(rounds=max(0, self._repeats.rounds - 1))  # this is one of them

    def begins_anew(self, lost_ns: int) -> None:
        """Leave out of this round what was lost on workers that did not fit beside each other: later rounds know."""
        self._round_ns += lost_ns

    def block_done(self, cell: Cell, blocks: Blocks, left: int | None) -> None:
        """Take a block that has ended, or a stretch of a fit with so many steps `left`."""
        if cell.in_blocks:
            if blocks.cycle[0] >= steps_of(self._plan.suite.plan, [cell]).cycles:
                repeated_s = self._repeated_now_s.get(cell.key, 0.0)
                self._repeated_now_s[cell.key] = repeated_s + blocks.span_ns[0] / 1e9
        else:
            stretch_s = WITH_REFERENCES * blocks.span_ns[0] / 1e9
            self._fits_s += stretch_s
            self._this_fit_s = stretch_s + (0.0 if blocks.cycle[0] == 0 else self._this_fit_s)
            self._fit_s[cell.key] = self._this_fit_s + (left or 0) * stretch_s / blocks.steps[0]

    def round_done(self, repeats: RepeatsToCome) -> None:
        """Take that the round is on disk; `repeats`: what is to be measured again."""
        other_s = self._fits_s + self._round.energy_s + sum(self._repeated_now_s.values())
        self._pace = max(0.0, self._spent_s() - other_s) / self._round.seconds
        self._repeats, self._round = repeats, _RoundTime()
        self._repeated_s, self._repeated_now_s = self._repeated_now_s, {}

    def estimate(self) -> TimeNeeded:
        """Return what is left."""
        fit_s = max(FIT_LEAST_S, mean(self._fit_s.values() or [0.0]))  # of one that has not run

        def seconds(planned: _RoundTime) -> float:
            fits_s = sum(self._fit_s.get(key, fit_s) for key in planned.fits)
            repeated_s = sum(self._repeated_s.get(key, 0.0) for key in planned.stepping & self._repeats.cells)
            return planned.seconds * (self._pace or 1.0) + planned.energy_s + fits_s + repeated_s

        this_round_s = seconds(self._round) - self._spent_s()
        fits = {key for planned in (self._round, *self._later) for key in planned.fits}
        is_guess = self._pace is None and self._has_programs
        is_least = self._is_open or is_guess or not fits <= self._fit_s.keys()
        longest_s = max((seconds(planned._replace(fits=())) for planned in self._planned), default=0.0)
        later_s = sum(map(seconds, self._later)) + self._repeats.rounds * longest_s
        return TimeNeeded(max(0.0, this_round_s) + later_s, is_least)

    def _energy(self, number: int) -> _EnergyTime:
        if not has_energy(self._plan, number):
            return _EnergyTime()
        return _EnergyTime(self._plan.suite.plan.energy_s, idle_s(self._plan.sensors))

    def _spent_s(self) -> float:
        return (self._now() - self._round_ns) / 1e9
