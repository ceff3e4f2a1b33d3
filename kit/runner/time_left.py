"""How long a run takes: by constants before its first round, by the pace of its last whole round after that.

Cycles are repeated in later rounds as in the last one, unless their neighbour stays: then none is. Rounds that are to
be measured again are added.

A fit is known from its first stretch on: steps that are left × what its steps took; before that as others in the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from statistics import mean
from typing import NamedTuple

from kit.backends.backend_catalog import CATALOG
from kit.clock import now_ns
from kit.profile.cell import Cell
from kit.profile.schema import Blocks, Group, StepPlan
from kit.profile.unfinished import RunPlan
from kit.runner.energy import has_energy, idle_s
from kit.runner.next_round import Repeats
from kit.runner.round import steps_of
from kit.suites.plan import Bundle, plan_bundles
from kit.workloads.device_operations import is_operation

# A fit takes at least this, besides its reference's warm-up: two builds, some stretches, two test passes. One of 50
# updates of mlp took 3 s, the one of cnn 8 (TensorFlow) to 25 s (JAX).
FIT_LEAST_S = 3.0
# Beside its stretches of a second a fit runs references of a quarter.
WITH_REFERENCES = 1.25


class Estimate(NamedTuple):
    """How long a run takes; `is_least` where fits, a user's own steps or a precision asked for leave that open."""

    seconds: float
    is_least: bool


class _Energy(NamedTuple):
    """What joules take in a round; nothing in one that has none."""

    block_s: float = 0.0  # of each cell
    idle_s: float = 0.0  # before and after each set of workers


class _Round(NamedTuple):
    """What a round takes by the constants, without the steps of its fits: cell keys, one for each time it runs."""

    seconds: float = 0.0
    fits: Sequence[str] = ()
    energy_s: float = 0.0  # takes as long on any machine
    stepping: frozenset[str] = frozenset()  # keys of cells that take turns


def _round_of(shared: Sequence[Bundle], steps: StepPlan, energy: _Energy) -> _Round:
    workers = [worker for groups in shared for worker in groups.workers]
    by_key = {cell.key: cell for worker in workers for cell in worker.cells}
    cells = [by_key[key] for groups in shared for group in groups.groups for key in group.cells]
    fits = [cell.key for cell in cells if cell.task == "fit"]
    plans = [steps_of(steps, [cell]) for cell in cells]
    stepping = [plan for plan, cell in zip(plans, cells, strict=True) if cell.task != "fit"]
    starts_s = sum(CATALOG[worker.cells[0].backend].start_s for worker in workers)
    blocks_s = sum(plan.cycles * plan.block_s for plan in stepping)
    seconds = starts_s + sum(plan.warmup_s for plan in plans) + blocks_s
    energy_s = sum(plan is steps for plan in stepping) * energy.block_s + 2 * len(shared) * energy.idle_s
    return _Round(seconds, fits, energy_s, frozenset(cell.key for cell in cells) - {*fits})


def _planned(
    cells: Sequence[Cell],
    groups: Sequence[Group],
    share: Sequence[str],
    steps: StepPlan,
    energies: Sequence[_Energy],
) -> list[_Round]:
    """Return the rounds, one for each of `energies`, where no cell fails: fits and operations end before steps do."""
    by_key = {cell.key: cell for cell in cells}

    @cache
    def shared(*, fits: bool, operations: bool) -> list[Bundle]:
        firsts = {group.key: by_key[group.cells[0]] for group in groups}
        left = [
            group
            for group in groups
            if (fits or firsts[group.key].task != "fit") and (operations or not is_operation(firsts[group.key]))
        ]
        return plan_bundles(cells, left, share)

    def lasts(limit: int | None, number: int) -> bool:
        return limit is None or number < limit

    return [
        _round_of(
            shared(fits=lasts(steps.fit_rounds, number), operations=lasts(steps.ceiling_rounds, number)), steps, energy
        )
        for number, energy in enumerate(energies)
    ]


def estimate(
    cells: Sequence[Cell], groups: Sequence[Group], share: Sequence[str], steps: StepPlan, rounds: int
) -> Estimate:
    """Return how long these rounds take where steps are short against a block, and no sensor tells joules."""
    planned = _planned(cells, groups, share, steps, [_Energy()] * rounds)
    seconds = sum(planned_round.seconds + len(planned_round.fits) * FIT_LEAST_S for planned_round in planned)
    return Estimate(seconds, any(planned_round.fits for planned_round in planned))


class TimeLeft:
    """Takes what has ended, and says how long the rest takes."""

    def __init__(self, plan: RunPlan, rounds_done: int = 0, now: Callable[[], int] = now_ns) -> None:
        suite, self._plan, self._now = plan.suite, plan, now
        energies = [self._energy(number) for number in range(suite.rounds)]
        self._planned = _planned(plan.cells, plan.groups, suite.process_axes, suite.plan, energies)
        self._round, self._later, self._round_ns = _Round(), self._planned[rounds_done:], now()
        self._is_open, self._has_programs = suite.precision_pct is not None, bool(suite.programs)
        self._pace: float | None = None  # what the last whole round took over its constants, without its fits
        self._fit_s: dict[str, float] = {}  # of each fit whose first stretch has run, in this round or before it
        self._this_fit_s = self._fits_s = 0.0  # of the fit that runs, and of all in this round, so far
        self._repeats = Repeats()
        self._repeated_s: dict[str, float] = {}  # of each cell in the last whole round: its blocks in repeated cycles
        self._repeated_now_s: dict[str, float] = {}  # the same in this round, so far

    @property
    def has_pace(self) -> bool:
        """Whether a round has ended: before, nothing is known of this machine."""
        return self._pace is not None

    def round_begins(self, number: int, shared: Sequence[Bundle]) -> None:
        """Take what a round measures."""
        self._round = _round_of(shared, self._plan.suite.plan, self._energy(number))
        self._later = self._planned[number + 1 :]
        self._round_ns, self._fits_s = self._now(), 0.0
        if number >= len(self._planned):
            self._repeats = self._repeats._replace(rounds=max(0, self._repeats.rounds - 1))  # this is one of them

    def begins_anew(self, lost_ns: int) -> None:
        """Leave out of this round what was lost on workers that did not fit beside each other: later rounds know."""
        self._round_ns += lost_ns

    def block_done(self, cell: Cell, blocks: Blocks, left: int | None) -> None:
        """Take a block that has ended, or a stretch of a fit with so many steps `left`."""
        if cell.task != "fit":
            if blocks.cycle[0] >= steps_of(self._plan.suite.plan, [cell]).cycles:
                repeated_s = self._repeated_now_s.get(cell.key, 0.0)
                self._repeated_now_s[cell.key] = repeated_s + blocks.span_ns[0] / 1e9
        else:
            stretch_s = WITH_REFERENCES * blocks.span_ns[0] / 1e9
            self._fits_s += stretch_s
            self._this_fit_s = stretch_s + (0.0 if blocks.cycle[0] == 0 else self._this_fit_s)
            self._fit_s[cell.key] = self._this_fit_s + (left or 0) * stretch_s / blocks.steps[0]

    def round_done(self, repeats: Repeats) -> None:
        """Take that the round is on disk; `repeats`: what is to be measured again."""
        other_s = self._fits_s + self._round.energy_s + sum(self._repeated_now_s.values())
        self._pace = max(0.0, self._spent_s() - other_s) / self._round.seconds
        self._repeats, self._round = repeats, _Round()
        self._repeated_s, self._repeated_now_s = self._repeated_now_s, {}

    def estimate(self) -> Estimate:
        """Return what is left."""
        fit_s = max(FIT_LEAST_S, mean(self._fit_s.values() or [0.0]))  # of one that has not run

        def seconds(planned: _Round) -> float:
            fits_s = sum(self._fit_s.get(key, fit_s) for key in planned.fits)
            repeated_s = sum(self._repeated_s.get(key, 0.0) for key in planned.stepping & self._repeats.cells)
            return planned.seconds * (self._pace or 1.0) + planned.energy_s + fits_s + repeated_s

        this_round_s = seconds(self._round) - self._spent_s()
        fits = {key for planned in (self._round, *self._later) for key in planned.fits}
        is_guess = self._pace is None and self._has_programs
        is_least = self._is_open or is_guess or not fits <= self._fit_s.keys()
        longest_s = max((seconds(planned._replace(fits=())) for planned in self._planned), default=0.0)
        later_s = sum(map(seconds, self._later)) + self._repeats.rounds * longest_s
        return Estimate(max(0.0, this_round_s) + later_s, is_least)

    def _energy(self, number: int) -> _Energy:
        if not has_energy(self._plan, number):
            return _Energy()
        return _Energy(self._plan.suite.plan.energy_s, idle_s(self._plan.sensors))

    def _spent_s(self) -> float:
        return (self._now() - self._round_ns) / 1e9
