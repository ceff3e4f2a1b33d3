"""How long a run takes: by constants before it begins, by what it shows of this machine after that.

before        constants of starts, warm-ups and blocks
first round   steps that are longer than a block, starts that are slower, and cycles that are repeated
later         the pace of the last whole round; cycles are repeated as in that one, unless their neighbor stays

Rounds that are to be measured again are added, and those for a precision as far as they are foreseen, but none that
would begin after a budget. A fit is known from its first stretch on: steps that are left × what its steps took; before
that as others in the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import pairwise
from statistics import mean
from typing import NamedTuple

from msgspec.structs import replace

from kit.backends.backend_catalog import CATALOG
from kit.clock import now_ns
from kit.compare.clean import CYCLES_LEAST
from kit.profile.cell import Cell
from kit.profile.schema import Blocks, Group, StepPlan
from kit.profile.unfinished import RunPlan
from kit.report.plan_report import TimeNeeded
from kit.runner.fit_stretches import FIT_LEAST_S, WITH_REFERENCES
from kit.runner.rounds_left import RepeatsToCome, is_measured_in
from kit.runner.warm_up_and_blocks import REPEATS_MOST, TIMED_MIN, has_energy, idle_s, planned_warm_up_s, steps_of
from kit.suites.groups import Bundle, WorkerPlan, plan_bundles


class _EnergyTime(NamedTuple):
    """What joules take in a round; nothing in one that has none."""

    block_s: float = 0.0  # of each cell
    idle_s: float = 0.0  # before and after each set of workers


class _RoundTime(NamedTuple):
    """What a round takes by the constants, without the steps of its fits: cell keys, one for each time it runs."""

    starts_s: float = 0.0
    steps_s: Sequence[tuple[str, float]] = ()  # warm-up and blocks
    fits: Sequence[str] = ()
    energy_s: float = 0.0  # takes as long on any machine
    stepping: frozenset[str] = frozenset()  # keys of cells that take turns

    @property
    def seconds(self) -> float:
        """What changes with the machine."""
        return self.starts_s + sum(seconds for _, seconds in self.steps_s)


def _needed_s(plan: StepPlan, cell: Cell) -> float:
    """Return what warm-up and blocks of a cell take whose steps are short against a block."""
    return planned_warm_up_s(plan, cell) + plan.cycles * plan.block_s


def _time_of_round(shared: Sequence[Bundle], steps: StepPlan, energy: _EnergyTime) -> _RoundTime:
    workers = [worker for groups in shared for worker in groups.workers]
    by_key = {cell.key: cell for worker in workers for cell in worker.cells}
    cells = [by_key[key] for groups in shared for group in groups.groups for key in group.cells]
    plans = [steps_of(steps, [cell]) for cell in cells]
    in_blocks = [plan for plan, cell in zip(plans, cells, strict=True) if cell.in_blocks]
    fits = [cell.key for cell in cells if not cell.in_blocks]
    return _RoundTime(
        starts_s=sum(CATALOG[worker.cells[0].backend].start_s for worker in workers),
        steps_s=[
            (cell.key, _needed_s(plan, cell) if cell.in_blocks else planned_warm_up_s(plan, cell))
            for plan, cell in zip(plans, cells, strict=True)
        ],
        fits=fits,
        energy_s=sum(plan is steps for plan in in_blocks) * energy.block_s + 2 * len(shared) * energy.idle_s,
        stepping=frozenset(cell.key for cell in cells) - {*fits},
    )


class _RoundsPlanned:
    """The planned rounds, as stretches of rounds that are alike: their number costs nothing."""

    def __init__(  # noqa: PLR0917
        self,
        cells: Sequence[Cell],
        groups: Sequence[Group],
        share: Sequence[str],
        steps: StepPlan,
        rounds: int,
        energy: Callable[[int], _EnergyTime],
    ) -> None:
        @cache
        def shared(gone: frozenset[str]) -> list[Bundle]:
            left = [replace(group, cells=[key for key in group.cells if key not in gone]) for group in groups]
            return plan_bundles(cells, [group for group in left if group.cells], share)

        # Some cells end before the others, and joules may be measured in the last round alone.
        ends = {steps.fit_rounds or 0, steps.ceiling_rounds or 0, rounds - 1}
        edges = sorted({0, rounds, *(end for end in ends if 0 < end < rounds)})
        self._stretches: list[tuple[range, _RoundTime]] = []
        for begin, end in pairwise(edges):
            gone = frozenset(cell.key for cell in cells if not is_measured_in(cell, steps, begin))
            self._stretches.append((range(begin, end), _time_of_round(shared(gone), steps, energy(begin))))
        self.rounds = rounds

    def from_round(self, number: int) -> list[tuple[int, _RoundTime]]:
        """Return what the rounds from `number` on take, as how many there are of each kind."""
        left = [(max(0, numbers.stop - max(number, numbers.start)), planned) for numbers, planned in self._stretches]
        return [(count, planned) for count, planned in left if count]


def estimate(
    cells: Sequence[Cell], groups: Sequence[Group], share: Sequence[str], steps: StepPlan, rounds: int
) -> TimeNeeded:
    """Return how long these rounds take where steps are short against a block, and no sensor tells joules."""
    planned = _RoundsPlanned(cells, groups, share, steps, rounds, lambda _: _EnergyTime()).from_round(0)
    seconds = sum(count * (each.seconds + len(each.fits) * FIT_LEAST_S) for count, each in planned)
    return TimeNeeded(seconds, any(each.fits for _, each in planned))


class TimeLeft:
    """Takes what has ended, and says how long the rest takes."""

    def __init__(
        self, plan: RunPlan, rounds_done: int = 0, budget_s: float | None = None, now: Callable[[], int] = now_ns
    ) -> None:
        suite, self._plan, self._now = plan.suite, plan, now
        self._until_ns = None if budget_s is None else now() + round(budget_s * 1e9)
        self._planned = _RoundsPlanned(
            plan.cells, plan.groups, suite.process_axes, suite.plan, suite.rounds, self._energy
        )
        self._round, self._later, self._round_ns = _RoundTime(), self._planned.from_round(rounds_done), now()
        self._is_open, self._has_programs = suite.precision_pct is not None, bool(suite.programs)
        self._pace: float | None = None  # what the last whole round took over its constants, without its fits
        commands = {name for name, source in suite.programs.items() if source.command is not None}
        self._first = _FirstRound(suite.plan, commands)
        self._fit_s: dict[str, float] = {}  # of each fit whose first stretch has run, in this round or before it
        self._this_fit_s = self._fits_s = 0.0  # of the fit that runs, and of all in this round, so far
        self._repeats = RepeatsToCome()
        self._repeated_s: dict[str, float] = {}  # of each cell in the last whole round: its blocks in repeated cycles
        self._repeated_now_s: dict[str, float] = {}  # the same in this round, so far

    @property
    def has_pace(self) -> bool:
        """Whether a round has ended: before, little is known of this machine."""
        return self._pace is not None

    @property
    def knows_steps(self) -> bool:
        """Whether any step has shown what it takes here."""
        return self.has_pace or self._first.knows_steps

    def round_begins(self, number: int, shared: Sequence[Bundle]) -> None:
        """Take what a round measures."""
        self._round = _time_of_round(shared, self._plan.suite.plan, self._energy(number))
        self._later = self._planned.from_round(number + 1)
        self._round_ns, self._fits_s = self._now(), 0.0
        if number >= self._planned.rounds:
            self._repeats = self._repeats._replace(rounds=max(0, self._repeats.rounds - 1))  # this is one of them

    def begins_anew(self, lost_ns: int) -> None:
        """Leave out of this round what was lost on workers that did not fit beside each other: later rounds know."""
        self._round_ns += lost_ns

    def starting(self, worker: WorkerPlan) -> None:
        """Take that a worker starts."""
        self._first.starting(CATALOG[worker.cells[0].backend].start_s)

    def warming_up(self, cell: Cell, step_s: float) -> None:
        """Take what a step of a cell takes in its warm-up."""
        if cell.in_blocks:
            self._first.step(cell, step_s, self._spent_s())

    def block_done(self, cell: Cell, blocks: Blocks, left: int | None) -> None:
        """Take a block that has ended, or a stretch of a fit with so many steps `left`."""
        span_s = blocks.span_ns[0] / 1e9
        if cell.in_blocks:
            self._first.block(cell, blocks)
            if blocks.cycle[0] >= steps_of(self._plan.suite.plan, [cell]).cycles:
                self._repeated_now_s[cell.key] = self._repeated_now_s.get(cell.key, 0.0) + span_s
        else:
            stretch_s = WITH_REFERENCES * span_s
            self._fits_s += stretch_s
            self._this_fit_s = stretch_s + (0.0 if blocks.cycle[0] == 0 else self._this_fit_s)
            self._fit_s[cell.key] = self._this_fit_s + (left or 0) * stretch_s / blocks.steps[0]

    def cycle_done(self, clean: int, planned: int) -> None:
        """Take how many cycles of a group are clean, of those that are planned."""
        self._first.cycle(clean, planned)

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
            here_s = self._first.seconds(planned) if self._pace is None else planned.seconds * self._pace
            return here_s + planned.energy_s + fits_s + repeated_s

        this_round_s = seconds(self._round) - self._spent_s()
        if self._pace is None:
            this_round_s += self._first.more_s(self._round)
        kinds = [self._round, *(planned for _, planned in self._later)]
        is_guess = self._pace is None and self._has_programs
        is_least = self._is_open or is_guess or not {key for each in kinds for key in each.fits} <= self._fit_s.keys()
        every = [planned for _, planned in self._planned.from_round(0)]
        again_s = max((seconds(planned._replace(fits=())) for planned in every), default=0.0)
        later_s = sum(count * seconds(planned) for count, planned in self._later) + self._repeats.rounds * again_s
        this_round_s = max(0.0, this_round_s)
        longest_s = max(map(seconds, every), default=0.0)
        if self._until_ns is not None and longest_s:
            budget_s = max(0.0, (self._until_ns - self._now()) / 1e9 - this_round_s)
            # The round that begins last is finished.
            bound_s = math.ceil(budget_s / longest_s) * longest_s
            is_least = is_least and later_s < bound_s
            later_s = min(later_s, bound_s)
        return TimeNeeded(this_round_s + later_s, is_least)

    def _energy(self, number: int) -> _EnergyTime:
        if not has_energy(self._plan, number):
            return _EnergyTime()
        return _EnergyTime(self._plan.suite.plan.energy_s, idle_s(self._plan.sensors))

    def _spent_s(self) -> float:
        return (self._now() - self._round_ns) / 1e9


class _FirstRound:
    """What the first round shows before it has ended."""

    def __init__(self, steps: StepPlan, commands: Collection[str]) -> None:
        self._steps, self._commands = steps, commands  # workloads whose long steps run once a block
        self._starts_s = 0.0  # by the constants, of the workers that have been started
        self._start_rate: float | None = None  # what their starts took over that; null: none has made a step yet
        self._warmups_s: dict[str, float] = {}  # of each cell
        self._rates: dict[str, float] = {}  # of each cell: what its steps need over the constants
        self._surplus_s = 0.0  # what blocks took longer than their steps need: they were cut
        self._ran = 0  # cycles of the last group
        self._repeat_rate = 1.0  # cycles that run over those that are planned

    @property
    def knows_steps(self) -> bool:
        """Whether any step has shown what it takes here."""
        return bool(self._rates)

    def starting(self, start_s: float) -> None:
        """Take that a worker starts, which takes so long by the constants."""
        if self._start_rate is None:
            self._starts_s += start_s

    def step(self, cell: Cell, step_s: float, spent_s: float) -> None:
        """Take what a step of a cell takes; `spent_s`: since the round began."""
        if self._start_rate is None:
            self._start_rate = max(1.0, spent_s / max(1e-9, self._starts_s))
        plan = steps_of(self._steps, [cell])
        self._warmups_s[cell.key] = planned_warm_up_s(plan, cell, step_s)
        # It has at least a step of lead-in, and TIMED_MIN after that.
        least = 1 if cell.workload in self._commands else 1 + TIMED_MIN
        self._take(cell, max(plan.block_s, least * step_s))

    def block(self, cell: Cell, blocks: Blocks) -> None:
        """Take a block of a cell; one that was cut is longer than those that come."""
        span_s, plan = blocks.span_ns[0] / 1e9, steps_of(self._steps, [cell])
        step_s = blocks.duration_ns[0] / blocks.steps[0] / 1e9
        block_s = max(plan.block_s, (1 + TIMED_MIN) * step_s) if blocks.cut() else span_s
        self._surplus_s += span_s - block_s
        self._ran = blocks.cycle[0] + 1
        self._take(cell, block_s)

    def _take(self, cell: Cell, block_s: float) -> None:
        plan = steps_of(self._steps, [cell])
        warmup_s, cycles = self._warmups_s.get(cell.key, planned_warm_up_s(plan, cell)), plan.cycles
        if cell.workload in self._commands:  # long ones have fewer blocks
            cycles = max(CYCLES_LEAST, round(cycles * plan.block_s / max(block_s, plan.block_s)))
        self._rates[cell.key] = (warmup_s + cycles * block_s) / _needed_s(plan, cell)

    def cycle(self, clean: int, planned: int) -> None:
        """Take how many cycles of those that have run are clean, of so many that are planned."""
        disturbed = self._ran - clean
        self._repeat_rate = min(REPEATS_MOST, 1 + disturbed / max(1, clean)) if clean < planned else self._repeat_rate

    def seconds(self, planned: _RoundTime) -> float:
        """Return what a round takes, as far as this one shows it: cells that have not run are as the others."""
        usual = mean(self._rates.values()) if self._rates else 1.0
        steps_s = sum(seconds * self._rates.get(key, usual) for key, seconds in planned.steps_s)
        return planned.starts_s * (self._start_rate or 1.0) + steps_s

    def more_s(self, planned: _RoundTime) -> float:
        """Return what this round takes longer than that: later rounds repeat as many cycles if their neighbor goes."""
        blocks_s = sum(seconds * self._rates.get(key, 1.0) for key, seconds in planned.steps_s)
        return self._surplus_s + (self._repeat_rate - 1) * blocks_s
